// Ends the kernel with a fault. PTX ISA, "trap".
// SPDX-License-Identifier: Apache-2.0
#pragma once

__device__ __forceinline__ void trap() { asm volatile("trap;"); }
