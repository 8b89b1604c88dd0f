// An opened database: finds kernels, remembers the problems it was asked for, shares loaded code between them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "tuner/runtime/kernel.h"
#include "tuner/runtime/op_rows.h"

/// The handle of the C interface.
struct kw_database {
 public:
  /// Seen problems that are remembered; when there are more all are forgotten, and a kernel lives on while the caller holds it.
  static constexpr std::size_t kMaxProblems = 4096;

  static kw::tuner::Outcome<std::unique_ptr<kw_database>> open(const std::string& path);
  ~kw_database();
  kw_database(const kw_database&) = delete;
  kw_database& operator=(const kw_database&) = delete;

  /// A reference of the caller's own.
  kw::tuner::Outcome<kw_kernel*> find(std::string_view op, std::span<const kw_value> values, unsigned flags);

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
  };
  struct Question {
    std::string op;
    kw::Problem problem;
    kw::tuner::DeviceModel device;
    bool allows_other_device = false;
  };

  explicit kw_database(std::unique_ptr<kw::db::Database> database) : database_(std::move(database)) {}
  kw::tuner::Outcome<const kw::tuner::DriverApi*> driver();
  kw_kernel* find_seen(std::string_view key) const;
  void remember(std::string_view key, kw_kernel* kernel);
  kw::tuner::Outcome<kw_kernel*> find_stored(Question question);
  kw::tuner::Outcome<kw::tuner::OpRows*> rows_of(const kw::db::OpRow& op, const Question& question);
  /// Null: none is legal; `first_refusal` says why the best is not.
  kw::tuner::Outcome<kw_kernel*> make_kernel(kw::tuner::OpRows& rows, const Question& question, std::string& first_refusal);
  kw::tuner::Outcome<std::shared_ptr<kw::tuner::StoredVariant>> variant_of(const kw::db::TrialRecord& record);

  const std::unique_ptr<kw::db::Database> database_;
  const std::shared_ptr<kw::tuner::TensorMapCache> maps_ = std::make_shared<kw::tuner::TensorMapCache>();
  std::atomic<const kw::tuner::DriverApi*> driver_{nullptr};

  mutable std::shared_mutex seen_mutex_;
  std::unordered_map<std::string, kw_kernel*, TextHash, std::equal_to<>> seen_;

  std::mutex search_mutex_;                                                       ///< of all that follows
  std::map<std::tuple<std::string, std::string, bool>, kw::tuner::OpRows> rows_;  ///< op identity, device model, other devices
  std::map<std::string, std::weak_ptr<kw::tuner::StoredVariant>> variants_;       ///< by the binary's key
};
