// wgmma. Place: simulator/execute/decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"

namespace kw::simulate {

Status Decoder::decode_wgmma(Instr&) { return refuse("wgmma is not supported"); }

}  // namespace kw::simulate
