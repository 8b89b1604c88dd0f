// Whether a program is one matrix product with an epilogue that a BLAS library fuses, and which call of the library that is. It is
// recognised from the plan's group by the matcher of the templates, whatever the spec's names are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "generator/base/library_matmul.h"
#include "generator/plan/fusion_group.h"

namespace kw::generator {

/// The same work as one call of cuBLASLt: f16, bf16 or f32 operands, f32 sums, at most one batch index (any that flatten to one), a unit
/// stride in each matrix, and as epilogue nothing, a bias, relu, gelu_tanh, or bias and one of them. Where the result can be written both
/// ways (one of its extents is 1) the way that serves the bias is taken.
/// Error kNotSupported: which statement has no such epilogue, or which tensor does not fit.
Result<LibraryMatmul> library_matmul(const Program& program, const Problem& problem);

}  // namespace kw::generator
