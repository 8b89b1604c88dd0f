// See library.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/runtime/library.h"

#include <fmt/format.h>

#include <cstring>

#include "generator/base/arch.h"
#include "tuner/runtime/asked_problem.h"

using namespace kw;
using namespace kw::tuner;

namespace {

/// What a problem is remembered by: the call's own bytes, so that a seen one is found without parsing. Another order of the same values
/// is another key of the same kernel's twin.
class SeenKey {
 public:
  SeenKey(std::string_view op, std::span<const kw_value> values, unsigned flags, CudaDevice device) {
    append(&device, sizeof device);
    append(&flags, sizeof flags);
    append(op.data(), op.size() + 1);
    for (const kw_value& value : values) {
      append(&value.value, sizeof value.value);
      append(value.name, std::strlen(value.name) + 1);
    }
  }
  std::string_view view() const { return overflow_.empty() ? std::string_view(bytes_, num_bytes_) : overflow_; }

 private:
  void append(const void* data, std::size_t num_bytes) {
    if (overflow_.empty() && num_bytes_ + num_bytes <= sizeof bytes_) {
      std::memcpy(bytes_ + num_bytes_, data, num_bytes);
      num_bytes_ += num_bytes;
      return;
    }
    if (overflow_.empty()) overflow_.assign(bytes_, num_bytes_);
    overflow_.append(static_cast<const char*>(data), num_bytes);
  }
  char bytes_[512];
  std::size_t num_bytes_ = 0;
  std::string overflow_;
};

}  // namespace

Outcome<std::unique_ptr<kw_database>> kw_database::open(const std::string& path) {
  KW_OUTCOME(std::unique_ptr<db::Database> database, db::Database::open(path, {.is_read_only = true, .creates = false}));
  return std::unique_ptr<kw_database>(new kw_database(std::move(database)));
}

kw_database::~kw_database() {
  for (const auto& [key, kernel] : seen_) kernel->release();
}

Outcome<const DriverApi*> kw_database::driver() {
  if (const DriverApi* loaded = driver_.load(std::memory_order_acquire); loaded != nullptr) return loaded;
  const Result<const DriverApi*> loaded = load_driver();
  if (!loaded) return failed(KW_NO_CONTEXT, loaded.error().message);
  driver_.store(*loaded, std::memory_order_release);
  return *loaded;
}

kw_kernel* kw_database::find_seen(std::string_view key) const {
  const std::shared_lock lock(seen_mutex_);
  const auto found = seen_.find(key);
  if (found == seen_.end()) return nullptr;
  found->second->retain();
  return found->second;
}

void kw_database::remember(std::string_view key, kw_kernel* kernel) {
  const std::unique_lock lock(seen_mutex_);
  if (seen_.size() >= kMaxProblems) {
    for (const auto& [old_key, old_kernel] : seen_) old_kernel->release();
    seen_.clear();
  }
  kernel->retain();
  if (!seen_.emplace(key, kernel).second) kernel->release();  // another thread was faster
}

Outcome<kw_kernel*> kw_database::find(std::string_view op, std::span<const kw_value> values, unsigned flags) {
  KW_OUTCOME(const DriverApi* const api, driver());
  KW_OUTCOME(const CudaDevice device, current_device(*api));
  const SeenKey key(op, values, flags, device);
  if (kw_kernel* const seen = find_seen(key.view()); seen != nullptr) return seen;
  KW_OUTCOME(Problem asked, problem_of(values));
  KW_OUTCOME(kw_kernel* const kernel,
             find_stored({std::string(op), std::move(asked), model_of(*api, device), (flags & KW_FIND_OTHER_DEVICE) != 0}));
  remember(key.view(), kernel);
  return kernel;
}

Outcome<OpRows*> kw_database::rows_of(const db::OpRow& op, const Question& question) {
  const auto key = std::make_tuple(op.identity, question.device.name, question.allows_other_device);
  auto found = rows_.find(key);
  if (found == rows_.end()) {
    KW_OUTCOME(OpRows rows, OpRows::load(*database_, {op.identity, question.device.name, question.allows_other_device}));
    found = rows_.emplace(key, std::move(rows)).first;
  }
  if (!found->second.empty()) return &found->second;
  rows_.erase(found);
  KW_OUTCOME(const std::string models, other_models(*database_, op.identity));
  if (models.empty()) return failed(KW_NOT_FOUND, fmt::format("{}: no kernel of '{}' is stored", database_->path(), op.name));
  return failed(KW_NOT_FOUND,
                fmt::format("{}: no kernel of '{}' is stored for {}; there are some for {} (KW_FIND_OTHER_DEVICE takes those whose "
                            "code runs here)",
                            database_->path(), op.name, question.device.name, models));
}

Outcome<kw_kernel*> kw_database::find_stored(Question question) {
  const std::lock_guard lock(search_mutex_);
  KW_OUTCOME(const db::OpRow op, find_op(*database_, question.op));
  question.op = op.name;
  std::string first_refusal;
  const auto loaded = rows_.find(std::make_tuple(op.identity, question.device.name, question.allows_other_device));
  if (loaded == rows_.end()) {
    // A problem that was tuned needs only its own rows.
    KW_OUTCOME(OpRows exact, OpRows::load(*database_, {op.identity, question.device.name, false, question.problem.to_text()}));
    KW_OUTCOME(kw_kernel* const kernel, make_kernel(exact, question, first_refusal));
    if (kernel != nullptr) return kernel;
  }
  KW_OUTCOME(OpRows* const rows, rows_of(op, question));
  KW_OUTCOME(const LaunchPlan* const plan, rows->any_plan());
  KW_OUTCOME_VOID(complete_problem(op.name, *plan, question.problem));
  first_refusal.clear();
  KW_OUTCOME(kw_kernel* const kernel, make_kernel(*rows, question, first_refusal));
  if (kernel != nullptr) return kernel;
  return failed(KW_NOT_FOUND, fmt::format("{}: no stored kernel of '{}' is legal at {} on {}; the best: {}", database_->path(), op.name,
                                          question.problem.to_text(), question.device.name, first_refusal));
}

Outcome<kw_kernel*> kw_database::make_kernel(OpRows& rows, const Question& question, std::string& first_refusal) {
  const auto refuse = [&](const std::string& why) {
    if (first_refusal.empty()) first_refusal = why;
  };
  for (OpRow* const row : rows.ranked(question.problem)) {
    const db::TrialRecord& record = row->candidate.row.record;
    const std::optional<Arch> arch = arch_from_text(record.key.variant.arch);
    if (!arch || !runs_on(*arch, question.device.compute_capability)) {
      refuse(fmt::format("{}: its code for {} does not run here", record.key.variant.id, record.key.variant.arch));
      continue;
    }
    KW_OUTCOME(const LaunchPlan* const plan, row->plan());
    Result<BoundPlan> bound =
        bind_plan({.label = record.key.variant.id, .cubin = {}, .plan = *plan, .problem = question.problem, .scalars = {}});
    if (!bound) {
      refuse(bound.error().message);
      continue;
    }
    KW_OUTCOME(std::shared_ptr<StoredVariant> variant, variant_of(record));
    if (variant == nullptr) {
      refuse(fmt::format("{}: its code was taken by `kernelwright db gc`: `tune --retune` brings it back", record.key.variant.id));
      continue;
    }
    const bool is_measured = record.trial.status == TrialStatus::kOk;
    return new kw_kernel({.driver = *driver_.load(),
                          .device_model = question.device.name,
                          .info = {.match = kind_of(row->candidate),
                                   .explanation = explain_match(row->candidate),
                                   .variant = record.key.variant.id,
                                   .config = record.key.variant.config,
                                   .measured_at = record.key.problem.dims_text,
                                   .time_us = is_measured ? record.trial.median_us : 0},
                          .plan = std::move(*bound),
                          .variant = std::move(variant),
                          .maps = maps_});
  }
  return nullptr;
}

Outcome<std::shared_ptr<StoredVariant>> kw_database::variant_of(const db::TrialRecord& record) {
  if (std::shared_ptr<StoredVariant> known = variants_[record.binary.key].lock(); known != nullptr) return known;
  KW_OUTCOME(std::string cubin, database_->cubin_of(record.id));
  if (cubin.empty()) return std::shared_ptr<StoredVariant>();
  auto variant = std::make_shared<StoredVariant>(*driver_.load(), std::move(cubin));
  variants_[record.binary.key] = variant;
  return variant;
}
