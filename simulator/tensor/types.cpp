// Names and sizes of the element types.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/tensor/types.h"

#include "generator/base/error.h"

namespace kw::simulate {

std::string_view to_text(ElementType type) {
  switch (type) {
    case ElementType::kF16:
      return "f16";
    case ElementType::kBF16:
      return "bf16";
    case ElementType::kTF32:
      return "tf32";
    case ElementType::kE4M3:
      return "e4m3";
    case ElementType::kE5M2:
      return "e5m2";
    case ElementType::kS8:
      return "s8";
    case ElementType::kU8:
      return "u8";
    case ElementType::kF32:
      return "f32";
    case ElementType::kF64:
      return "f64";
    case ElementType::kS32:
      return "s32";
  }
  KW_CHECK(false, "an element type outside the enum");
}

int size_bytes(ElementType type) {
  switch (type) {
    case ElementType::kF16:
    case ElementType::kBF16:
      return 2;
    case ElementType::kE4M3:
    case ElementType::kE5M2:
    case ElementType::kS8:
    case ElementType::kU8:
      return 1;
    case ElementType::kF64:
      return 8;
    case ElementType::kTF32:
    case ElementType::kF32:
    case ElementType::kS32:
      return 4;
  }
  KW_CHECK(false, "an element type outside the enum");
}

TensorArch tensor_arch_for(int compute_capability) {
  if (compute_capability >= 100) return TensorArch::kSm100;
  if (compute_capability >= 90) return TensorArch::kSm90;
  return compute_capability >= 89 ? TensorArch::kSm89 : TensorArch::kSm80;
}

}  // namespace kw::simulate
