// What a call of the run-time library fails with: a status and a sentence, made of the errors of the parts below it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "generator/base/error.h"
#include "tuner/device/driver_api.h"
#include "tuner/runtime/include/kernelwright.h"

namespace kw::tuner {

struct Failure {
  kw_status status = KW_INTERNAL;
  std::string sentence;
};
template <typename T>
using Outcome = tl::expected<T, Failure>;

inline tl::unexpected<Failure> failed(kw_status status, std::string sentence) {
  return tl::unexpected<Failure>(Failure{status, std::move(sentence)});
}
tl::unexpected<Failure> failed(const Error& error);
tl::unexpected<Failure> failed(const CudaFault& fault);

/// A failure is handed on as it is.
inline tl::unexpected<Failure> failed(Failure failure) { return tl::unexpected<Failure>(std::move(failure)); }

}  // namespace kw::tuner

/// KW_OUTCOME(declaration, expression): unwraps an Outcome, Result or CudaResult, or returns its failure.
#define KW_OUTCOME(declaration, expression)                                                                    \
  auto KW_CONCAT(kw_outcome_, __LINE__) = (expression);                                                        \
  if (!KW_CONCAT(kw_outcome_, __LINE__)) return ::kw::tuner::failed(KW_CONCAT(kw_outcome_, __LINE__).error()); \
  declaration = std::move(*KW_CONCAT(kw_outcome_, __LINE__))
#define KW_OUTCOME_VOID(expression)                                  \
  do {                                                               \
    auto kw_outcome = (expression);                                  \
    if (!kw_outcome) return ::kw::tuner::failed(kw_outcome.error()); \
  } while (false)
