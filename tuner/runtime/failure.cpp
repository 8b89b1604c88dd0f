// See failure.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/failure.h"

namespace kw::tuner {
namespace {

kw_status status_of(const Error& error) {
  switch (error.code) {
    case Code::kNotFound:
      return KW_NOT_FOUND;
    case Code::kIo:
      return KW_BAD_DATABASE;
    case Code::kBadInput:
      // What the caller says is checked under kCommandLine; all else was read from the database.
      return error.stage == Stage::kCommandLine ? KW_BAD_ARGUMENT : KW_BAD_DATABASE;
    case Code::kDevice:
      return KW_DRIVER;
    case Code::kNotSupported:
    case Code::kToolchain:
    case Code::kInternal:
      break;
  }
  return KW_INTERNAL;
}

kw_status status_of(const CudaFault& fault) {
  if (fault.code < 0) return KW_BAD_DATABASE;  // our own finding: the stored plan and the stored code differ
  switch (fault.code) {
    case 2:  // CUDA_ERROR_OUT_OF_MEMORY
      return KW_OUT_OF_MEMORY;
    case 3:    // not initialised
    case 201:  // invalid context: none is current
    case 709:  // the context is destroyed
      return KW_NO_CONTEXT;
    default:
      return KW_DRIVER;
  }
}

}  // namespace

tl::unexpected<Failure> failed(const Error& error) { return failed(status_of(error), to_text(error)); }
tl::unexpected<Failure> failed(const CudaFault& fault) { return failed(status_of(fault), fault.text); }

}  // namespace kw::tuner
