// From a launch file to buffers and arguments in a simulation, and back to differences from what was expected.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <cstring>
#include <random>

#include <fmt/format.h>

#include "simulator/launch/launch_file.h"

namespace kw::simulate {
namespace {

tl::unexpected<Error> refuse(const LaunchFile& file, int line, std::string message) {
  return fail(Stage::kCommandLine, Code::kBadInput, std::move(message), {file.file, line, 0});
}

Result<std::vector<std::byte>> filled(const LaunchFile& file, const LaunchFileBuffer& buffer, const BufferFill& fill,
                                      const ReadFile& read_file) {
  const auto element_bytes = static_cast<std::uint64_t>(size_bytes(buffer.dtype));
  const std::uint64_t num_bytes = buffer.num_elements * element_bytes;
  if (fill.kind == BufferFill::Kind::kFile) {
    KW_TRY(std::vector<std::byte> bytes, read_file(fill.path));
    if (bytes.size() != num_bytes) {
      return refuse(file, 0,
                    fmt::format("buffer '{}': {} has {} bytes, {} elements of {} need {}", buffer.name, fill.path, bytes.size(),
                                buffer.num_elements, to_text(buffer.dtype), num_bytes));
    }
    return bytes;
  }
  std::vector<std::byte> bytes(num_bytes);
  if (fill.kind == BufferFill::Kind::kZeros || fill.kind == BufferFill::Kind::kNothing) return bytes;
  std::mt19937_64 random(fill.seed);
  for (std::uint64_t element = 0; element < buffer.num_elements; ++element) {
    double value = fill.constant;
    if (fill.kind == BufferFill::Kind::kIota) value = static_cast<double>(element);
    // Multiples of 1/64 in [-1, 1): exact in every float type with 7 bits; integers get -64 .. 63.
    if (fill.kind == BufferFill::Kind::kRandom) {
      const auto step = static_cast<double>(static_cast<std::int64_t>(random() % 128) - 64);
      value = is_float(buffer.dtype) ? step / 64 : step;
    }
    store_element(buffer.dtype, value, bytes.data() + element * element_bytes);
  }
  return bytes;
}

struct Packer {
  const LaunchFile& file;
  const PreparedLaunch& prepared;

  Result<std::vector<std::byte>> pack(const LaunchFileArgument& from) const {
    switch (from.kind) {
      case LaunchFileArgument::Kind::kBytes:
        return from.bytes;
      case LaunchFileArgument::Kind::kBuffer:
        return argument(prepared.addresses.at(from.name) + from.offset_bytes);
      case LaunchFileArgument::Kind::kTensorMap: {
        const LaunchFileTensorMap& entry = file.tensor_maps.at(from.name);
        TensorMap map = entry.map;
        map.global_address = prepared.addresses.at(entry.buffer) + entry.offset_bytes;
        const auto encoded = encode_tensor_map(map);
        if (!encoded) return refuse(file, from.line, fmt::format("tensor_map '{}': {}", from.name, encoded.error().message));
        const auto* first = reinterpret_cast<const std::byte*>(encoded->data());
        return std::vector<std::byte>(first, first + encoded->size());
      }
      case LaunchFileArgument::Kind::kStruct:
        break;
    }
    // C layout: natural alignment of each field and of the whole; tensor maps are 64-byte aligned.
    std::vector<std::byte> bytes;
    std::size_t struct_align = 1;
    for (const LaunchFileArgument& field : from.fields) {
      KW_TRY(const std::vector<std::byte> value, pack(field));
      std::size_t align = 1;
      while (align < 64 && value.size() % (2 * align) == 0 && align < value.size()) align *= 2;
      if (field.kind != LaunchFileArgument::Kind::kTensorMap) align = std::min<std::size_t>(align, 8);
      struct_align = std::max(struct_align, align);
      bytes.resize((bytes.size() + align - 1) / align * align);
      bytes.insert(bytes.end(), value.begin(), value.end());
    }
    bytes.resize((bytes.size() + struct_align - 1) / struct_align * struct_align);
    return bytes;
  }
};

}  // namespace

Result<PreparedLaunch> prepare_launch(const LaunchFile& file, const ReadFile& read_file, Simulation& simulation) {
  PreparedLaunch prepared;
  prepared.call = file.call;
  for (const auto& [name, buffer] : file.buffers) {
    BufferRequest request{name, buffer.num_elements * static_cast<std::uint64_t>(size_bytes(buffer.dtype)), buffer.role,
                          buffer.align_bytes};
    std::vector<std::byte> initial;
    if (buffer.role != AllocationRole::kOutput) {
      // Reserve first: a buffer over the memory cap is refused before its values are made.
      if (request.num_bytes > simulation.options().max_global_bytes) {
        return refuse(file, 0,
                      fmt::format("buffer '{}': {} bytes: the simulation's memory cap is {} bytes", name, request.num_bytes,
                                  simulation.options().max_global_bytes));
      }
      KW_TRY(initial, filled(file, buffer, buffer.fill, read_file));
    }
    request.initial = initial;
    KW_TRY(prepared.addresses[name], simulation.allocate(request));
  }
  const Packer packer{file, prepared};
  for (const LaunchFileArgument& argument : file.arguments) {
    KW_TRY(prepared.call.arguments.emplace_back(), packer.pack(argument));
  }
  return prepared;
}

Result<std::vector<Difference>> compare_expected(const LaunchFile& file, const PreparedLaunch& prepared, const ReadFile& read_file,
                                                 const Simulation& simulation) {
  std::vector<Difference> differences;
  for (const auto& [name, buffer] : file.buffers) {
    if (buffer.expected.kind == BufferFill::Kind::kNothing) continue;
    KW_TRY(const std::vector<std::byte> expected, filled(file, buffer, buffer.expected, read_file));
    const std::span<const std::byte> got = simulation.bytes(prepared.addresses.at(name));
    const auto element_bytes = static_cast<std::uint64_t>(size_bytes(buffer.dtype));
    Difference difference{.buffer = name, .num_elements = buffer.num_elements};
    for (std::uint64_t element = 0; element < buffer.num_elements; ++element) {
      const double want = load_element(buffer.dtype, expected.data() + element * element_bytes);
      const double have = load_element(buffer.dtype, got.data() + element * element_bytes);
      // Written so that a NaN on one side counts as wrong.
      const bool is_right = want == have || (std::isnan(want) && std::isnan(have)) ||
                            std::abs(have - want) <= buffer.tolerance * std::max(1.0, std::abs(want));
      if (is_right) continue;
      if (difference.num_wrong++ == 0) {
        difference.first_element = element;
        difference.got = have;
        difference.expected = want;
      }
    }
    if (difference.num_wrong != 0) differences.push_back(std::move(difference));
  }
  return differences;
}

}  // namespace kw::simulate
