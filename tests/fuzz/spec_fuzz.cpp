// libFuzzer entry: any bytes as an op spec. The parser and the checker must end without a crash, a hang or a sanitizer report, and
// what they accept must print as a spec of the same identity.
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "generator/spec/op_spec.h"

namespace {

using namespace kw::generator;

std::shared_ptr<const Program> check(std::string_view text) {
  kw::Diagnostics diagnostics;
  const FileReader read_file = [&](const std::string&) -> kw::Result<std::string> {
    return kw::fail(kw::Stage::kSpec, kw::Code::kIo, "no files here");
  };
  const auto spec = parse_op_spec(text, "fuzz.op.toml", read_file, diagnostics);
  std::shared_ptr<const Program> program = spec ? check_op_spec(*spec, {}, diagnostics) : nullptr;
  if ((program == nullptr) != diagnostics.has_errors()) std::abort();  // a refusal has a reason, and only a refusal
  return program;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto program = check(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!program) return 0;
  const auto again = check(to_text(*program));
  if (!again || identity(*again) != identity(*program)) std::abort();
  return 0;
}
