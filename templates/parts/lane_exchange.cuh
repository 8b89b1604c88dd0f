// Values change places between neighbouring lanes, for stores of more than a lane's own columns. SPDX-License-Identifier: Apache-2.0
#pragma once

/// One exchange between lanes whose numbers differ in `bit` (1 or 2): the lane without it keeps `low` and gets the other's `low` as `high`;
/// the lane with it keeps `high` and gets the other's `high` as `low`.
__device__ __forceinline__ void exchange(float& low, float& high, int lane, int bit) {
  const bool is_upper = (lane & bit) != 0;
  const float received = __shfl_xor_sync(0xffffffffu, is_upper ? low : high, bit);
  low = is_upper ? received : low;
  high = is_upper ? high : received;
}
