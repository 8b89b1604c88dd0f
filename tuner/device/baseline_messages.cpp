// Outcomes of a library's calls as messages. See baseline_job.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/baseline_job.h"
#include "tuner/device/worker_messages.h"

namespace kw::tuner {
namespace {

using nlohmann::json;

template <typename Outcome>
json common_to_json(const Outcome& outcome) {
  return {{"status", static_cast<int>(outcome.status)}, {"error", outcome.error}, {"is_transient", outcome.is_transient}};
}
template <typename Outcome>
Outcome common_from_json(const json& head) {
  Outcome outcome;
  outcome.status = static_cast<TrialStatus>(head.value("status", static_cast<int>(TrialStatus::kDeviceLost)));
  outcome.error = head.value("error", "");
  outcome.is_transient = head.value("is_transient", false);
  return outcome;
}

}  // namespace

json to_json(const LibraryFile& library) { return {{"path", library.path}, {"origin", library.origin}, {"version", library.version}}; }
LibraryFile library_file_from_json(const json& head) {
  return {head.value("path", ""), head.value("origin", ""), head.value("version", "")};
}

json to_json(const BaselineAlgorithm& algorithm) { return {{"data", algorithm.data}, {"summary", algorithm.summary}}; }
BaselineAlgorithm baseline_algorithm_from_json(const json& head) {
  return {head.at("data").get<std::array<std::uint64_t, 8>>(), head.value("summary", "")};
}

json to_json(const BaselineList& list) {
  json head = common_to_json(list);
  head["library"] = to_json(list.library);
  head["algorithms"] = json::array();
  for (const BaselineAlgorithm& algorithm : list.algorithms) head["algorithms"].push_back(to_json(algorithm));
  return head;
}
BaselineList baseline_list_from_json(const json& head) {
  auto list = common_from_json<BaselineList>(head);
  list.library = library_file_from_json(head.value("library", json::object()));
  for (const json& algorithm : head.value("algorithms", json::array())) list.algorithms.push_back(baseline_algorithm_from_json(algorithm));
  return list;
}

json to_json(const BaselineOutcome& outcome) {
  json head = common_to_json(outcome);
  head["verified"] = to_json(outcome.verified);
  head["measured"] = to_json(outcome.measured);
  return head;
}
BaselineOutcome baseline_outcome_from_json(const json& head) {
  auto outcome = common_from_json<BaselineOutcome>(head);
  outcome.verified = verify_outcome_from_json(head.value("verified", json::object()));
  outcome.measured = measure_outcome_from_json(head.value("measured", json::object()));
  return outcome;
}

}  // namespace kw::tuner
