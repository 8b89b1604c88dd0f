// The line from a spec to rows. A failed variant is a row with a status; an Error here means that the run itself cannot go on.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/session/tune_session.h"

#include "tuner/session/problem_tuner.h"

namespace kw::tuner {

Result<ProblemSummary> tune_problem(const LoadedSpec& spec, const Problem& problem, const TuneOptions& options, Services& services) {
  ProblemTuner tuner(spec, problem, options, services);
  KW_TRY_VOID(tuner.tune_steps());  // generator/plan, device  -> where plans have several kernels: each tuned as an op of its own
  KW_TRY_VOID(tuner.prepare());
  return tuner.finish();
}

Status ProblemTuner::prepare() {
  KW_TRY_VOID(rank_and_choose());    // generator/plan, space   -> configs in the model's order, refused ones by rule
  KW_TRY_VOID(emit_chosen());        // generator/lower, emit   -> Variant: text + launch plan
  KW_TRY_VOID(find_earlier_rows());  // db                      -> what is known already
  return find_baseline();            // generator/plan, db      -> is the op one call of a library, and is its time known
}

Result<ProblemSummary> ProblemTuner::finish() {
  if (!services_.has_device()) {
    KW_TRY_VOID(predict());  // tuner/compile | simulate | db, rows with status `predicted`
    return summary();
  }
  KW_TRY_VOID(run_first_rung());  // tuner/compile | verify | measure | db, one row a variant
  screen_baseline();              // tuner/device            -> the library's algorithms, verified and timed as ours
  KW_TRY_VOID(run_final_rung());  // tuner/measure, db       -> the finalists by the full protocol, the library's among them
  KW_TRY_VOID(run_duels());       // tuner/measure, db       -> the best of them in turn, A B A B
  return summary();
}

Result<VerificationSummary> verify_problem(const LoadedSpec& spec, const Problem& problem, std::size_t num_variants,
                                           const TuneOptions& options, Services& services) {
  if (!services.has_device()) {
    const std::string& reason = services.no_device_reason();
    return fail(Stage::kVerify, Code::kDevice,
                "verify needs a GPU: " + (reason.empty() ? std::string("--device none was given") : reason) +
                    "\nWithout one, `kernelwright simulate` checks kernels on the PTX simulator.");
  }
  const auto start = std::chrono::steady_clock::now();
  ProblemTuner tuner(spec, problem, options, services);
  KW_TRY_VOID(tuner.rank_and_choose());
  KW_TRY_VOID(tuner.emit_chosen());
  KW_TRY_VOID(tuner.run_verification(num_variants));
  VerificationSummary summary = tuner.verification();
  summary.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return summary;
}

}  // namespace kw::tuner
