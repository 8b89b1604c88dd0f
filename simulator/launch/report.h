// A launch's report for people (text) and programs (JSON): every finding with its PTX line, instruction and source line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <nlohmann/json_fwd.hpp>

#include "simulator/launch/launch.h"

namespace kw::simulate {

/// "gemm.ptx:123 ld.shared.f32, source gemm.cu:45".
std::string line_of(const LaunchReport& report, std::uint32_t pc);
std::string to_text(const LaunchReport& report);
nlohmann::json to_json(const LaunchReport& report);

}  // namespace kw::simulate
