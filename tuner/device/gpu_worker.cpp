// The parent's handle on the GPU: starts the child, asks, judges silence. A child that hangs is killed with its group, one that met a
// sticky error has ended by itself; the next job gets a fresh one. See gpu_worker.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/device/gpu_worker.h"

#include <fmt/format.h>

#include <algorithm>

#include "generator/base/hash.h"
#include "tuner/compile/child_process.h"
#include "tuner/compile/compiler.h"
#include "tuner/device/baseline_job.h"
#include "tuner/device/gpu_lock.h"
#include "tuner/device/worker_messages.h"

namespace kw::tuner {
namespace {

constexpr std::chrono::milliseconds kListLimit{60000};
// Kernels are loaded when they are first used unless told otherwise: not wanted between the events of a measurement.
const std::vector<std::string> kWorkerEnvironment = {"CUDA_MODULE_LOADING=EAGER", "CUDA_DEVICE_ORDER=PCI_BUS_ID"};

Result<std::unique_ptr<ChildProcess>> start_child(const std::string& command) {
  return ChildProcess::start(command, "__gpu-worker", kWorkerEnvironment);
}

/// The answer's head, or why there is none.
Result<nlohmann::json> ask(ChildProcess& child, const Message& question, std::chrono::milliseconds limit) {
  const Reply reply = child.ask(question, limit);
  if (reply.kind == ReplyKind::kTimeout)
    return fail(Stage::kDevice, Code::kDevice,
                fmt::format("GPU worker: no answer to '{}' after {} ms", question.head.value("op", ""), limit.count()));
  if (reply.kind != ReplyKind::kAnswered) {
    return fail(Stage::kDevice, Code::kDevice,
                fmt::format("GPU worker: {} at '{}': {}", reply.how_died, question.head.value("op", ""), child.error_output(300)));
  }
  if (!reply.message.head.value("ok", false))
    return fail(Stage::kDevice, Code::kDevice, reply.message.head.value("error", "GPU worker: refused"));
  return reply.message.head;
}

Result<std::vector<DeviceInfo>> ask_for_devices(ChildProcess& child) {
  Message question;
  question.head = {{"op", "list"}};
  KW_TRY(const nlohmann::json head, ask(child, question, kListLimit));
  std::vector<DeviceInfo> devices;
  for (const nlohmann::json& device : head.at("devices")) devices.push_back(device_info_from_json(device));
  return devices;
}

class ChildGpuWorker final : public GpuWorker {
 public:
  ChildGpuWorker(GpuWorkerOptions options, DeviceInfo info, GpuLock lock)
      : options_(std::move(options)), info_(std::move(info)), lock_(std::move(lock)) {}

  /// Makes the context in `child`, or in a fresh one.
  Status open(std::unique_ptr<ChildProcess> child) {
    if (child == nullptr) {
      KW_TRY(child, start_child(options_.worker_command));
    }
    if (options_.fill_cubin && fill_cubin_.empty()) {
      const std::optional<Arch> arch = arch_for_device(info_.limits.compute_capability);
      if (!arch) return fail(Stage::kDevice, Code::kNotSupported, fmt::format("{}: unknown architecture", info_.limits.model_name));
      KW_TRY(fill_cubin_, options_.fill_cubin(*arch));
    }
    Message question;
    question.head = {{"op", "open"}, {"device", to_json(info_)}, {"uses_memory_guards", options_.uses_memory_guards}};
    question.blobs = {fill_cubin_};
    KW_TRY(const nlohmann::json head, ask(*child, question, options_.start_limit));
    child_ = std::move(child);
    prepared_.clear();
    return {};
  }

  const DeviceInfo& device() const override { return info_; }

  VerifyOutcome verify(const KernelJob& job, const std::vector<InputFill>& inputs, const std::vector<OutputSamples>& samples) override {
    Message question = question_about("verify", job, inputs);
    add_samples(question, samples);
    VerifyOutcome outcome;
    if (!prepare(job, inputs, nullptr, outcome)) return outcome;
    return request(question, options_.verify_limit, verify_outcome_from_json);
  }

  MeasureOutcome measure(const KernelJob& job, const std::vector<InputFill>& inputs, const std::vector<OutputSamples>& samples,
                         const Protocol& protocol) override {
    Message question = question_about("measure", job, inputs);
    add_samples(question, samples);
    question.head["protocol"] = to_json(protocol);
    MeasureOutcome outcome;
    if (!prepare(job, inputs, &protocol, outcome)) return outcome;
    return request(question, options_.measure_limit, measure_outcome_from_json);
  }

  DuelOutcome duel(const KernelJob& a, const KernelJob& b, const std::vector<InputFill>& inputs, const Protocol& protocol) override {
    Message question = question_about("duel", a, inputs);
    add_job(question, "other_job", b);
    question.head["protocol"] = to_json(protocol);
    DuelOutcome outcome;
    if (!prepare(a, inputs, &protocol, outcome)) return outcome;
    return request(question, options_.measure_limit, duel_outcome_from_json);
  }

  BaselineList list_baseline(const BaselineJob& job, const std::vector<InputFill>& inputs, const Protocol& protocol) override {
    BaselineList list;
    if (!prepare(job.problem, inputs, &protocol, list)) return list;
    // The first call loads a library of hundreds of megabytes: that is no hang.
    return request(question_about_baseline("list_baseline", job, inputs, protocol), options_.start_limit, baseline_list_from_json);
  }

  BaselineOutcome time_baseline(const BaselineJob& job, const BaselineAlgorithm& algorithm, const std::vector<InputFill>& inputs,
                                const std::vector<OutputSamples>& samples, const Protocol& protocol) override {
    Message question = question_about_baseline("time_baseline", job, inputs, protocol);
    question.head["algorithm"] = to_json(algorithm);
    add_samples(question, samples);
    BaselineOutcome outcome;
    if (!prepare(job.problem, inputs, &protocol, outcome)) return outcome;
    return request(question, options_.measure_limit, baseline_outcome_from_json);
  }

 private:
  static Message question_about_baseline(const char* op, const BaselineJob& job, const std::vector<InputFill>& inputs,
                                         const Protocol& protocol) {
    Message question = question_about(op, job.problem, inputs);
    question.head["matmul"] = to_json(job.matmul);
    question.head["max_algorithms"] = job.max_algorithms;
    question.head["workspace_bytes"] = job.workspace_bytes;
    question.head["protocol"] = to_json(protocol);
    return question;
  }

  static Message question_about(const char* op, const KernelJob& job, const std::vector<InputFill>& inputs) {
    Message question;
    question.head = {{"op", op}, {"fills", to_json(inputs)}};
    add_job(question, "job", job);
    return question;
  }

  /// Makes the inputs of a new problem under a limit of their own, so that a large problem is not taken for a hanging kernel.
  template <typename Outcome>
  bool prepare(const KernelJob& job, const std::vector<InputFill>& inputs, const Protocol* protocol, Outcome& outcome) {
    Message question = question_about("prepare", job, inputs);
    if (protocol != nullptr) question.head["protocol"] = to_json(*protocol);
    const std::string mode = protocol == nullptr ? "verify" : "measure";
    const std::string key =
        hash_hex(job.problem.to_text() + question.head.at("fills").dump() + (protocol == nullptr ? "" : to_json(*protocol).dump()));
    if (child_ != nullptr && prepared_[mode] == key) return true;
    const VerifyOutcome made = request(question, options_.start_limit, verify_outcome_from_json);
    outcome.status = made.status == TrialStatus::kHung ? TrialStatus::kDeviceLost : made.status;
    outcome.error = made.error;
    outcome.is_transient = made.is_transient || outcome.status == TrialStatus::kDeviceLost;
    if (made.status == TrialStatus::kOk) prepared_[mode] = key;
    return made.status == TrialStatus::kOk;
  }

  template <typename Read>
  auto request(const Message& question, std::chrono::milliseconds limit, Read read) -> decltype(read(nlohmann::json())) {
    decltype(read(nlohmann::json())) outcome;
    if (child_ == nullptr) {
      if (const Status status = open(nullptr); !status) return lost(std::move(outcome), status.error().message);
    }
    const Reply reply = child_->ask(question, limit);
    if (reply.kind == ReplyKind::kAnswered) {
      const nlohmann::json& head = reply.message.head;
      const bool is_last = head.value("is_last", false);
      outcome = head.value("ok", false) ? read(head.at("outcome")) : lost(std::move(outcome), head.value("error", "GPU worker: refused"));
      if (is_last) drop_child();
      return outcome;
    }
    if (reply.kind == ReplyKind::kTimeout) {
      outcome.status = TrialStatus::kHung;
      outcome.error = fmt::format("no end after {} ms: killed", limit.count());
    } else {
      // The driver took the process down while it ran this kernel.
      outcome.status = TrialStatus::kLaunchFailed;
      outcome.error = fmt::format("the GPU worker was {}: {}", reply.how_died, child_->error_output(300));
    }
    if (!drop_child()) outcome.error += "; the worker does not die: the GPU may need a reset by its owner";
    return outcome;
  }

  template <typename Outcome>
  static Outcome lost(Outcome outcome, const std::string& error) {
    outcome.status = TrialStatus::kDeviceLost;
    outcome.error = error;
    outcome.is_transient = true;
    return outcome;
  }

  bool drop_child() {
    const bool is_dead = child_->kill_group();
    child_.reset();
    prepared_.clear();
    return is_dead;
  }

  GpuWorkerOptions options_;
  DeviceInfo info_;
  GpuLock lock_;  // given back after the child's end: it is destroyed last
  std::string fill_cubin_;
  std::map<std::string, std::string> prepared_;
  std::unique_ptr<ChildProcess> child_;
};

}  // namespace

Result<std::vector<DeviceInfo>> list_devices(const std::string& worker_command) {
  KW_TRY(const std::unique_ptr<ChildProcess> child, start_child(worker_command));
  return ask_for_devices(*child);
}

Result<LibraryFile> find_cublaslt(const std::string& worker_command) {
  KW_TRY(const std::unique_ptr<ChildProcess> child, start_child(worker_command));
  Message question;
  question.head = {{"op", "find_cublaslt"}};
  KW_TRY(const nlohmann::json head, ask(*child, question, kListLimit));
  return library_file_from_json(head.at("library"));
}

Result<std::unique_ptr<GpuWorker>> GpuWorker::start(GpuWorkerOptions options) {
  KW_TRY(std::unique_ptr<ChildProcess> child, start_child(options.worker_command));
  KW_TRY(const std::vector<DeviceInfo> devices, ask_for_devices(*child));
  const auto found =
      std::find_if(devices.begin(), devices.end(), [&](const DeviceInfo& info) { return info.ordinal == options.device_ordinal; });
  if (found == devices.end()) {
    return fail(Stage::kDevice, Code::kDevice,
                fmt::format("cuda:{}: no such GPU: there are {} that can be used", options.device_ordinal, devices.size()));
  }
  KW_TRY(GpuLock lock, GpuLock::acquire(found->uuid, options.lock_folder, options.lock_limit, options.notice));
  auto worker = std::make_unique<ChildGpuWorker>(std::move(options), *found, std::move(lock));
  KW_TRY_VOID(worker->open(std::move(child)));
  return std::unique_ptr<GpuWorker>(std::move(worker));
}

Result<std::string> compile_fill_kernels(CompilePool& pool, const std::string& source, Arch arch) {
  CompileOutcome outcome =
      pool.submit({.source = source, .arch = arch, .kernel_name = "fill_input_f16", .options = {}, .wants_ptx = false}).get();
  if (outcome.status != TrialStatus::kOk) {
    return fail(Error{
        Stage::kDevice, Code::kToolchain, fmt::format("fill_inputs.cuh for {}: {}", to_text(arch), outcome.error), {}, outcome.kernel.log});
  }
  return std::move(outcome.kernel.cubin);
}

}  // namespace kw::tuner
