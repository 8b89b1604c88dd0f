// A library's call as a job for the GPU's worker, and what becomes of it: the baseline that our kernels are compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "generator/base/library_matmul.h"
#include "tuner/device/gpu_worker.h"

namespace kw::tuner {

inline constexpr int kMaxBaselineAlgorithms = 32;                              // docs/protocol.md, peers: its first 32 heuristics
inline constexpr std::size_t kBaselineWorkspaceBytes = std::size_t{32} << 20;  // what NVIDIA's samples and PyTorch give it on sm_90

/// What the worker's process finds, without a device.
struct LibraryFile {
  std::string path, origin, version;  ///< version "13.0.2"
};

struct BaselineJob {
  KernelJob problem;  ///< its plan has the op's tensors and no launch; no cubin
  LibraryMatmul matmul;
  int max_algorithms = kMaxBaselineAlgorithms;
  std::size_t workspace_bytes = kBaselineWorkspaceBytes;
};

/// One proposal of the library's heuristics; valid for the same version of the library.
struct BaselineAlgorithm {
  std::array<std::uint64_t, 8> data{};
  std::string summary;  ///< "algo 66, tile 20, stages 36, split-K 1"
};

/// Statuses: kOk; kRefused: the library is missing, or has nothing for this product; else as any job's.
struct BaselineList {
  TrialStatus status = TrialStatus::kOk;
  std::string error;
  bool is_transient = false;
  LibraryFile library;
  std::vector<BaselineAlgorithm> algorithms;  ///< in the library's order
};

/// Statuses: kOk; kRefused, kWrongResult, kOutOfBounds, kUnderFloor: this algorithm is no baseline, the next one may be; else the worker
/// was lost or stopped.
struct BaselineOutcome {
  TrialStatus status = TrialStatus::kOk;
  std::string error;
  bool is_transient = false;
  VerifyOutcome verified;
  MeasureOutcome measured;
};

nlohmann::json to_json(const BaselineList& list);
BaselineList baseline_list_from_json(const nlohmann::json& json);
nlohmann::json to_json(const BaselineOutcome& outcome);
BaselineOutcome baseline_outcome_from_json(const nlohmann::json& json);
nlohmann::json to_json(const LibraryFile& library);
LibraryFile library_file_from_json(const nlohmann::json& json);
nlohmann::json to_json(const BaselineAlgorithm& algorithm);
BaselineAlgorithm baseline_algorithm_from_json(const nlohmann::json& json);

/// The library as a short-lived child finds it. Error kToolchain: where it was looked for, and the cure.
Result<LibraryFile> find_cublaslt(const std::string& worker_command);

}  // namespace kw::tuner
