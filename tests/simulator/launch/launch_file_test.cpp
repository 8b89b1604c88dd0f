// Launch files: a complete run, every kind of argument, and refusals with their lines.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/launch/launch_file.h"

#include "tests/catch.h"
#include "tests/simulator/launch/small_kernels.h"

namespace kw::simulate {
namespace {

Result<std::vector<std::byte>> no_files(const std::string& path) { return fail(Stage::kCommandLine, Code::kIo, path + ": not there"); }

const std::string kSaxpy = R"(
source = "saxpy.ptx"
kernel = "k"
grid = [4]
block = [64]
arguments = [{s32 = 200}, {f32 = 2.0}, {buffer = "x"}, {buffer = "y"}]
[buffer.x]
dtype = "f32"
elements = 200
role = "in"
fill = "constant:3"
[buffer.y]
dtype = "f32"
elements = 200
role = "inout"
fill = "constant:0.5"
expected = "constant:6.5"
)";

TEST_CASE("a launch file runs somebody's kernel and compares its output") {
  const auto file = parse_launch_file(kSaxpy, "saxpy.launch.toml");
  REQUIRE(file.has_value());
  CHECK(file->source == "saxpy.ptx");
  Simulation simulation;
  const auto prepared = prepare_launch(*file, no_files, simulation);
  REQUIRE(prepared.has_value());
  const auto module = parse_ptx(saxpy_text(), "saxpy.ptx");
  const auto report = simulation.launch(*module, prepared->call);
  REQUIRE(report.has_value());
  CHECK(report->is_clean());
  CHECK(compare_expected(*file, *prepared, no_files, simulation)->empty());
}

TEST_CASE("a wrong result is counted and its first element named; NaN is wrong") {
  std::string text = kSaxpy;
  text.replace(text.find("constant:6.5"), 12, "constant:6.0");
  auto file = parse_launch_file(text, "saxpy.launch.toml");
  Simulation simulation;
  const auto prepared = prepare_launch(*file, no_files, simulation);
  const auto module = parse_ptx(saxpy_text(), "saxpy.ptx");
  REQUIRE(simulation.launch(*module, prepared->call).has_value());
  const auto differences = compare_expected(*file, *prepared, no_files, simulation);
  REQUIRE(differences->size() == 1);
  CHECK(differences->at(0).num_wrong == 200);
  CHECK(differences->at(0).got == 6.5);
  file->buffers["y"].tolerance = 0.1;
  CHECK(compare_expected(*file, *prepared, no_files, simulation)->empty());
  file->buffers["y"].expected.constant = std::numeric_limits<double>::quiet_NaN();
  CHECK(compare_expected(*file, *prepared, no_files, simulation)->size() == 1);
}

TEST_CASE("arguments of every kind are packed in C layout") {
  const auto file = parse_launch_file(R"(
source = "k.ptx"
grid = [1]
block = [32]
arguments = [{u8 = 255}, {s16 = -2}, {u64 = 5}, {f16 = 1.0}, {bf16 = 1.0}, {f64 = 1.5}, {hex = "00ff10"},
             {buffer = "a", offset_bytes = 8}, {fields = [{s32 = 1}, {buffer = "a"}, {s8 = -1}]}, {tensor_map = "map"}]
[buffer.a]
dtype = "bf16"
elements = 4096
role = "in"
fill = "random:3"
[tensor_map.map]
buffer = "a"
type = "bf16"
extents = [64, 64]
box = [64, 8]
swizzle = 128
)",
                                      "k.toml");
  if (!file) FAIL(to_text(file.error()));
  Simulation simulation;
  const auto prepared = prepare_launch(*file, no_files, simulation);
  if (!prepared) FAIL(to_text(prepared.error()));
  const auto& arguments = prepared->call.arguments;
  const std::uint64_t address = prepared->addresses.at("a");
  CHECK(arguments[0] == argument(std::uint8_t{255}));
  CHECK(arguments[1] == argument(std::int16_t{-2}));
  CHECK(arguments[2] == argument(std::uint64_t{5}));
  CHECK(arguments[3] == argument(std::uint16_t{0x3c00}));
  CHECK(arguments[4] == argument(std::uint16_t{0x3f80}));
  CHECK(arguments[5] == argument(1.5));
  CHECK(arguments[6].size() == 3);
  CHECK(arguments[7] == argument(address + 8));
  struct Fields {
    std::int32_t a = 1;
    std::uint64_t b = 0;
    std::int8_t c = -1;
  };
  CHECK(arguments[8].size() == sizeof(Fields));
  CHECK(std::memcmp(arguments[8].data() + 8, &address, 8) == 0);
  std::array<std::uint8_t, kTensorMapBytes> bytes{};
  std::memcpy(bytes.data(), arguments[9].data(), bytes.size());
  const auto map = decode_tensor_map(bytes);
  REQUIRE(map.has_value());
  CHECK(map->global_address == address);
  CHECK(map->strides_bytes[0] == 128);
}

TEST_CASE("mistakes in a launch file are refused with their line") {
  const auto refusal = [](const std::string& from, const std::string& to) {
    std::string text = kSaxpy;
    text.replace(text.find(from), from.size(), to);
    const auto file = parse_launch_file(text, "l.toml");
    return file ? std::string("accepted") : to_text(file.error());
  };
  CHECK(refusal("grid = [4]", "gridd = [4]").find("unknown key 'gridd'; did you mean 'grid'?") != std::string::npos);
  CHECK(refusal("grid = [4]", "").find("grid must be given") != std::string::npos);
  CHECK(refusal("grid = [4]", "grid = [4, 0]").find("grid: must be an integer from 1 to") != std::string::npos);
  CHECK(refusal("grid = [4]", "grid = 4").find("grid: must be a list of 1 to 3 integers") != std::string::npos);
  CHECK(refusal("grid = [4]", "grid = [4").find("l.toml:") == 0);
  CHECK(refusal("{s32 = 200}", "{s32 = 3000000000}").find("argument 0: s32: the value does not fit") != std::string::npos);
  CHECK(refusal("{s32 = 200}", "{s32 = \"x\"}").find("argument 0: s32: must be a number of that type") != std::string::npos);
  CHECK(refusal("{s32 = 200}", "{int = 1}").find("argument 0: unknown kind 'int'") != std::string::npos);
  CHECK(refusal("{s32 = 200}", "5").find("argument 0: must be a table") != std::string::npos);
  CHECK(refusal("{s32 = 200}", "{hex = \"0g\"}").find("hex: must be pairs of hexadecimal digits") != std::string::npos);
  CHECK(refusal("{buffer = \"x\"}", "{buffer = \"z\"}").find("there is no buffer 'z'") != std::string::npos);
  CHECK(refusal("\"f32\"", "\"f31\"").find("dtype 'f31' is not known") != std::string::npos);
  CHECK(refusal("elements = 200", "elements = -1").find("elements: must be an integer from 1") != std::string::npos);
  CHECK(refusal("role = \"in\"", "role = \"read\"").find("role 'read': must be in, out or inout") != std::string::npos);
  CHECK(refusal("fill = \"constant:3\"", "fill = \"constant:x\"").find("must be zeros, iota, constant:VALUE, random:SEED or file:PATH") !=
        std::string::npos);
  CHECK(refusal("fill = \"constant:3\"", "").find("fill must be given") != std::string::npos);
  CHECK(refusal("role = \"in\"", "role = \"out\"").find("an output has no fill") != std::string::npos);
}

TEST_CASE("TOML that its library would stumble over is refused with its place") {
  for (const std::string& text : {std::string(100'000, '['), std::string("\"a"), std::string("[\xc3\xa9]"), std::string("a = [[["),
                                  std::string("[]"), std::string("\xff"), std::string("= 1")}) {
    CAPTURE(text.substr(0, 20));
    const auto file = parse_launch_file(text, "l.toml");
    REQUIRE(!file);
    CHECK(to_text(file.error()).find("l.toml:") == 0);
  }
  std::string deep = "a";
  for (int depth = 0; depth < 100'000; ++depth) deep += ".a";
  CHECK(!parse_launch_file(deep + " = 1", "l.toml"));
}

TEST_CASE("files of the wrong size, and buffers over the memory cap, are refused when the launch is prepared") {
  std::string text = kSaxpy;
  text.replace(text.find("constant:3"), 10, "file:x.bin");
  const auto file = parse_launch_file(text, "l.toml");
  Simulation simulation;
  CHECK(prepare_launch(*file, no_files, simulation).error().message == "x.bin: not there");
  const auto short_file = [](const std::string&) -> Result<std::vector<std::byte>> { return std::vector<std::byte>(5); };
  CHECK(prepare_launch(*file, short_file, simulation).error().message == "buffer 'x': x.bin has 5 bytes, 200 elements of f32 need 800");
  Simulation small({.max_global_bytes = 100});
  CHECK(!prepare_launch(*parse_launch_file(kSaxpy, "l.toml"), no_files, small));
}

}  // namespace
}  // namespace kw::simulate
