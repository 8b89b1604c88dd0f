// Bulk and tensor copies. Place: simulator/execute/decoder.h.
// SPDX-License-Identifier: Apache-2.0
#include "simulator/execute/decoder.h"

namespace kw::simulate {

Status Decoder::decode_bulk(Instr&) { return refuse("bulk copies are not supported"); }

}  // namespace kw::simulate
