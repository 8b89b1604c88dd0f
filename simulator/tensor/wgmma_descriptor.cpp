// The 64-bit shared-memory descriptor of wgmma and the addresses it stands for. Rules read back element by element from an H200:
//   K-major, swizzle S:  L = start + (mn%8)*S + (mn/8)*SBO + k*es               (LBO ignored)
//   K-major, none:       L = start + (mn%8)*16 + (mn/8)*SBO + (k/T)*LBO + (k%T)*es       T = elements in 16 bytes
//   MN-major, swizzle S: L = start + (mn*es)%S + ((mn*es)/S)*LBO + (k%8)*S + (k/8)*SBO
//   MN-major, none:      L = start + (mn%8)*2 + (mn/8)*SBO + (k%8)*16 + (k/8)*LBO
// then L ^= ((L>>7) & 7) << 4 for 128B, & 3 for 64B, & 1 for 32B; a base offset is subtracted from L>>7 before the XOR.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "simulator/tensor/wgmma.h"

namespace kw::simulate {
namespace {

constexpr std::uint32_t kWindowMask = 0x3ffff;  // 18 bits of shared-memory address
constexpr int kChunkBytes = 16;

std::uint32_t swizzled(const SmemDescriptor& descriptor, std::uint32_t linear) {
  const std::uint32_t row = (linear >> 7) - static_cast<std::uint32_t>(descriptor.base_offset);
  switch (descriptor.swizzle) {
    case Swizzle::kNone:
      break;
    case Swizzle::k128B:
      linear ^= (row & 7) << 4;
      break;
    case Swizzle::k64B:
      linear ^= (row & 3) << 4;
      break;
    case Swizzle::k32B:
      linear ^= (row & 1) << 4;
      break;
  }
  return linear & kWindowMask;
}

bool is_mn_major(const WgmmaForm& form, WgmmaOperand operand) {
  return operand == WgmmaOperand::kA ? form.is_a_transposed : form.is_b_transposed;
}
int rows_of(const WgmmaForm& form, WgmmaOperand operand) { return operand == WgmmaOperand::kA ? kWgmmaRows : form.n; }
int element_bytes(const WgmmaForm& form, WgmmaOperand operand) { return size_bytes(operand == WgmmaOperand::kA ? form.a : form.b); }

std::uint32_t k_major_chunk(const SmemDescriptor& d, std::uint32_t mn, std::uint32_t k_chunk) {
  const auto span = static_cast<std::uint32_t>(span_bytes(d.swizzle));
  const std::uint32_t k_step = d.swizzle == Swizzle::kNone ? d.leading_bytes : kChunkBytes;
  return d.start_bytes + mn % 8 * span + mn / 8 * d.stride_bytes + k_chunk * k_step;
}

std::uint32_t mn_major_chunk(const SmemDescriptor& d, std::uint32_t mn_chunk, std::uint32_t k) {
  const auto span = static_cast<std::uint32_t>(span_bytes(d.swizzle));
  if (d.swizzle == Swizzle::kNone) return d.start_bytes + mn_chunk * d.stride_bytes + k % 8 * kChunkBytes + k / 8 * d.leading_bytes;
  const std::uint32_t mn_bytes = mn_chunk * kChunkBytes;
  return d.start_bytes + mn_bytes % span + mn_bytes / span * d.leading_bytes + k % 8 * span + k / 8 * d.stride_bytes;
}

std::uint32_t element_of(const std::uint8_t* bytes, int size) {
  std::uint32_t element = 0;
  __builtin_memcpy(&element, bytes, static_cast<std::size_t>(size));
  return element;
}

}  // namespace

Result<SmemDescriptor> decode_smem_descriptor(std::uint64_t bits) {
  constexpr std::uint64_t kReserved = 0x3ff1'c000'c000'c000ull;  // 14-15, 30-31, 46-48, 52-61
  if ((bits & kReserved) != 0) {
    return fail(
        Stage::kVerify, Code::kBadInput,
        fmt::format("wgmma descriptor 0x{:016x}: reserved bits 0x{:x} are set (fields: address>>4 14 bits at 0, LBO>>4 at 16, SBO>>4 at "
                    "32, base offset at 49, swizzle at 62)",
                    bits, bits & kReserved));
  }
  const auto field = [&](int shift) { return static_cast<std::uint32_t>(bits >> shift & 0x3fff) << 4; };
  return SmemDescriptor{.start_bytes = field(0),
                        .leading_bytes = field(16),
                        .stride_bytes = field(32),
                        .base_offset = static_cast<int>(bits >> 49 & 7),
                        .swizzle = static_cast<Swizzle>(bits >> 62)};
}

std::string to_text(const SmemDescriptor& descriptor) {
  static constexpr const char* kNames[] = {"none", "128B", "64B", "32B"};
  return fmt::format("start 0x{:x}, LBO {}, SBO {}, base offset {}, swizzle {}", descriptor.start_bytes, descriptor.leading_bytes,
                     descriptor.stride_bytes, descriptor.base_offset, kNames[static_cast<int>(descriptor.swizzle)]);
}

std::vector<std::uint32_t> operand_chunks(const WgmmaForm& form, WgmmaOperand operand, const SmemDescriptor& descriptor) {
  const auto rows = static_cast<std::uint32_t>(rows_of(form, operand));
  std::vector<std::uint32_t> chunks;
  chunks.reserve(2 * rows);
  if (is_mn_major(form, operand)) {
    for (std::uint32_t k = 0; k < static_cast<std::uint32_t>(form.k); ++k) {
      for (std::uint32_t mn_chunk = 0; mn_chunk < rows / 8; ++mn_chunk) {
        chunks.push_back(swizzled(descriptor, mn_major_chunk(descriptor, mn_chunk, k)));
      }
    }
    return chunks;
  }
  for (std::uint32_t mn = 0; mn < rows; ++mn) {
    for (std::uint32_t k_chunk = 0; k_chunk < kWgmmaKBytes / kChunkBytes; ++k_chunk) {
      chunks.push_back(swizzled(descriptor, k_major_chunk(descriptor, mn, k_chunk)));
    }
  }
  return chunks;
}

WgmmaTile operand_from_chunks(const WgmmaForm& form, WgmmaOperand operand, std::span<const std::uint8_t> bytes) {
  const int rows = rows_of(form, operand), size = element_bytes(form, operand);
  KW_CHECK(static_cast<int>(bytes.size()) == rows * kWgmmaKBytes, "a wgmma operand is 32 bytes a row");
  WgmmaTile tile{.rows = rows, .k = form.k, .bits = std::vector<std::uint32_t>(static_cast<std::size_t>(rows * form.k))};
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < form.k; ++k) {
      const int element = is_mn_major(form, operand) ? k * rows + row : row * form.k + k;
      tile.bits[static_cast<std::size_t>(row * form.k + k)] = element_of(bytes.data() + element * size, size);
    }
  }
  return tile;
}

}  // namespace kw::simulate
