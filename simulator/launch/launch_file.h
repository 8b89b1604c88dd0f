// The launch file: a TOML text that says how to launch somebody's kernel. See docs/simulator.md for the keys; an example:
//   source = "saxpy.ptx"      kernel = "saxpy"      grid = [4]      block = [128]
//   arguments = [{s32 = 512}, {f32 = 2.0}, {buffer = "x"}, {buffer = "y"}]
//   [buffer.x]  dtype = "f32"  elements = 512  role = "in"     fill = "random:1"
//   [buffer.y]  dtype = "f32"  elements = 512  role = "inout"  fill = "iota"  expected = "file:y.bin"  tolerance = 1e-6
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "generator/base/dtype.h"
#include "simulator/launch/simulation.h"
#include "simulator/tensor/tensor_map.h"

namespace kw::simulate {

/// What a buffer's elements are before the launch, or should be after it.
struct BufferFill {
  enum class Kind { kNothing, kZeros, kConstant, kIota, kRandom, kFile } kind = Kind::kNothing;
  double constant = 0;
  std::uint64_t seed = 0;
  std::string path;
};

struct LaunchFileBuffer {
  std::string name;
  DType dtype = DType::kF32;
  std::uint64_t num_elements = 0;
  AllocationRole role = AllocationRole::kInput;
  std::uint64_t align_bytes = 256;
  BufferFill fill;
  BufferFill expected;
  double tolerance = 0;  ///< |got - expected| <= tolerance * max(1, |expected|)
};

struct LaunchFileTensorMap {
  std::string buffer;
  std::uint64_t offset_bytes = 0;
  TensorMap map;  ///< its address is filled in when the buffer has one
};

/// One argument or one field of a struct argument.
struct LaunchFileArgument {
  enum class Kind { kBytes, kBuffer, kTensorMap, kStruct } kind = Kind::kBytes;
  std::vector<std::byte> bytes;
  std::string name;  ///< of the buffer or tensor map
  std::uint64_t offset_bytes = 0;
  std::vector<LaunchFileArgument> fields;
  int line = 0;
};

struct LaunchFile {
  std::string file;
  std::string source;  ///< .ptx or .cu, relative to the launch file; empty: named elsewhere
  LaunchCall call;     ///< without arguments; an empty kernel name means the only kernel
  std::map<std::string, LaunchFileBuffer> buffers;
  std::map<std::string, LaunchFileTensorMap> tensor_maps;
  std::vector<LaunchFileArgument> arguments;
};

/// Errors name the key, its value, the rule, and the line.
Result<LaunchFile> parse_launch_file(std::string_view text, const std::string& file_name);

/// The symbol of the kernel that the launch file names, as the PTX spells it or as the source does ("scale<float>", "scale", where
/// only one fits); of the only kernel when it names none. Errors: no such kernel, or several (all are listed).
Result<std::string> find_kernel_symbol(const LaunchFile& file, const Module& module);

/// Reads a file named in the launch file (relative to it).
using ReadFile = std::function<Result<std::vector<std::byte>>(const std::string& path)>;

/// Allocates and fills the buffers in `simulation`; the returned call has its arguments. `addresses` by buffer name.
struct PreparedLaunch {
  LaunchCall call;
  std::map<std::string, std::uint64_t> addresses;
};
Result<PreparedLaunch> prepare_launch(const LaunchFile& file, const ReadFile& read_file, Simulation& simulation);

/// A buffer whose contents after the launch differ from `expected`.
struct Difference {
  std::string buffer;
  std::uint64_t num_wrong = 0;
  std::uint64_t num_elements = 0;
  std::uint64_t first_element = 0;
  double got = 0;
  double expected = 0;
};
Result<std::vector<Difference>> compare_expected(const LaunchFile& file, const PreparedLaunch& prepared, const ReadFile& read_file,
                                                 const Simulation& simulation);

}  // namespace kw::simulate
