// The arithmetic of one atomic element, shared by atomics and bulk reductions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "simulator/machine/machine.h"

namespace kw::simulate {

std::uint32_t atomic_bytes(AtomicType type);
/// memory = memory op operand, for an element in global memory; not for kCas.
void apply_reduction(const AtomicKind& kind, std::byte* memory, const std::byte* operand);

}  // namespace kw::simulate
