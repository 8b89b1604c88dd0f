// PTX scalar types as the tensor part's element types.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/ptx/scalar_type.h"
#include "simulator/tensor/types.h"

namespace kw::simulate {

/// Types that no matrix instruction has give kF32; the forms' own checks refuse the combination.
inline ElementType element_type(ScalarType type) {
  switch (type) {
    case ScalarType::kF16:
      return ElementType::kF16;
    case ScalarType::kBf16:
      return ElementType::kBF16;
    case ScalarType::kTf32:
      return ElementType::kTF32;
    case ScalarType::kE4m3:
      return ElementType::kE4M3;
    case ScalarType::kE5m2:
      return ElementType::kE5M2;
    case ScalarType::kS8:
      return ElementType::kS8;
    case ScalarType::kU8:
      return ElementType::kU8;
    case ScalarType::kF64:
      return ElementType::kF64;
    case ScalarType::kS32:
      return ElementType::kS32;
    default:
      return ElementType::kF32;
  }
}

}  // namespace kw::simulate
