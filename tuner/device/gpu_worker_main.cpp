// The GPU's worker process: answers one request after the other until the tuner closes the channel. After a sticky CUDA error it
// answers, marks the answer as its last, and ends. Hangs are the parent's to judge.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "tuner/device/device_baseline.h"
#include "tuner/device/device_tasks.h"
#include "tuner/device/gpu_worker.h"
#include "tuner/device/worker_messages.h"

namespace kw::tuner {
namespace {

class WorkerLoop {
 public:
  /// Sets `is_last` when the process must end after this answer.
  Message answer(const Message& question, bool& is_last) {
    const std::string op = question.head.value("op", "");
    if (op == "list") return list();
    if (op == "find_cublaslt") return find_library();
    if (op == "open") return open(question);
    if (tasks_ == nullptr) return refusal("the GPU worker was not opened");
    if (op == "prepare") return prepare(question, is_last);
    if (op == "verify") return verify(question, is_last);
    if (op == "measure") return measure(question, is_last);
    if (op == "duel") return duel(question, is_last);
    if (op == "list_baseline") return list_baseline(question, is_last);
    if (op == "time_baseline") return time_baseline(question, is_last);
    return refusal(fmt::format("the GPU worker does not know '{}'", op));
  }

 private:
  static Message refusal(const std::string& why) {
    Message message;
    message.head = {{"ok", false}, {"error", why}};
    return message;
  }

  static Message list() {
    const Result<const DriverApi*> driver = load_driver();
    if (!driver) return refusal(driver.error().message);
    const Result<std::vector<DeviceInfo>> devices = query_devices(**driver);
    if (!devices) return refusal(devices.error().message);
    Message message;
    message.head = {{"ok", true}, {"devices", nlohmann::json::array()}};
    for (const DeviceInfo& info : *devices) message.head["devices"].push_back(to_json(info));
    return message;
  }

  /// Without a driver any version will do: doctor asks on a machine without a GPU too.
  static Message find_library() {
    int driver_version = 0;
    if (const Result<const DriverApi*> driver = load_driver()) (*driver)->driver_version(&driver_version);
    const Result<CublasLtLibrary> library = open_cublaslt(driver_version / 1000);
    if (!library) return refusal(library.error().message);
    Message message;
    message.head = {{"ok", true}, {"library", to_json(LibraryFile{library->path, library->origin, library->version_text()})}};
    return message;
  }

  Message open(const Message& question) {
    const Result<const DriverApi*> driver = load_driver();
    if (!driver) return refusal(driver.error().message);
    if (const int code = (*driver)->init(0); code != 0) return refusal(cuda_fault(**driver, code, "cuInit").text);
    CudaResult<std::unique_ptr<DeviceContext>> opened =
        open_device(**driver, device_info_from_json(question.head.at("device")), question.blobs.at(0));
    if (!opened) return refusal(opened.error().text);
    device_ = std::move(*opened);
    tasks_ = std::make_unique<DeviceTasks>(*device_);
    tasks_->uses_memory_guards = question.head.value("uses_memory_guards", true);
    Message message;
    message.head = {{"ok", true}};
    return message;
  }

  /// A fault of CUDA as an outcome. Memory that is out is given back, so that the next job starts afresh.
  template <typename Outcome>
  Message outcome_message(CudaResult<Outcome> result, bool& is_last) {
    Outcome outcome;
    if (result) {
      outcome = std::move(*result);
    } else {
      const int code = result.error().code;
      outcome.status = status_of(code);
      outcome.error = result.error().text;
      outcome.is_transient = outcome.status == TrialStatus::kOutOfMemory || outcome.status == TrialStatus::kDeviceLost;
      is_last = is_sticky(code);
      if (outcome.status == TrialStatus::kOutOfMemory) {
        tasks_->verify_inputs.release();
        tasks_->measure_inputs.release();
      }
    }
    Message message;
    message.head = {{"ok", true}, {"outcome", to_json(outcome)}, {"is_last", is_last}};
    return message;
  }

  static CudaResult<KernelJob> job_of(const Message& question, const std::string& name) {
    KW_DEVICE_TRY(KernelJob job, read_job(question, name));
    if (const std::string broken = first_broken_constraint(job.plan, job.problem); !broken.empty()) {
      return tl::unexpected<CudaFault>(CudaFault{-2, fmt::format("{}: not legal for this problem: {}", job.label, broken)});
    }
    return job;
  }

  Message prepare(const Message& question, bool& is_last) {
    const auto run = [&]() -> CudaResult<VerifyOutcome> {
      KW_CUDA_TRY(const KernelJob job, job_of(question, "job"));
      const std::vector<InputFill> fills = fills_from_json(question.head.at("fills"));
      if (question.head.contains("protocol")) {
        KW_CUDA_TRY_VOID(prepare_measure(*tasks_, job, fills, protocol_from_json(question.head.at("protocol"))));
      } else {
        KW_CUDA_TRY_VOID(prepare_verify(*tasks_, job, fills));
      }
      return VerifyOutcome{};
    };
    return outcome_message(run(), is_last);
  }

  Message verify(const Message& question, bool& is_last) {
    const auto run = [&]() -> CudaResult<VerifyOutcome> {
      KW_CUDA_TRY(const KernelJob job, job_of(question, "job"));
      return verify_on_device(*tasks_, job, fills_from_json(question.head.at("fills")), read_samples(question));
    };
    return outcome_message(run(), is_last);
  }

  Message measure(const Message& question, bool& is_last) {
    const auto run = [&]() -> CudaResult<MeasureOutcome> {
      KW_CUDA_TRY(const KernelJob job, job_of(question, "job"));
      return measure_on_device(*tasks_, job, fills_from_json(question.head.at("fills")), read_samples(question),
                               protocol_from_json(question.head.at("protocol")));
    };
    return outcome_message(run(), is_last);
  }

  Message duel(const Message& question, bool& is_last) {
    const auto run = [&]() -> CudaResult<DuelOutcome> {
      KW_CUDA_TRY(const KernelJob a, job_of(question, "job"));
      KW_CUDA_TRY(const KernelJob b, job_of(question, "other_job"));
      return duel_on_device(*tasks_, a, b, fills_from_json(question.head.at("fills")), protocol_from_json(question.head.at("protocol")));
    };
    return outcome_message(run(), is_last);
  }

  static CudaResult<BaselineJob> baseline_job_of(const Message& question) {
    BaselineJob job;
    KW_CUDA_TRY(job.problem, job_of(question, "job"));
    KW_DEVICE_TRY(job.matmul, library_matmul_from_json(question.head.at("matmul")));
    job.max_algorithms = question.head.at("max_algorithms").get<int>();
    job.workspace_bytes = question.head.at("workspace_bytes").get<std::size_t>();
    return job;
  }

  Message list_baseline(const Message& question, bool& is_last) {
    const auto run = [&]() -> CudaResult<BaselineList> {
      if (const Status opened = open_library(); !opened) {
        BaselineList list;
        list.status = TrialStatus::kRefused;
        list.error = opened.error().message;
        return list;
      }
      KW_CUDA_TRY(const BaselineJob job, baseline_job_of(question));
      return list_on_device(*tasks_, *library_, job, fills_from_json(question.head.at("fills")),
                            protocol_from_json(question.head.at("protocol")));
    };
    return outcome_message(run(), is_last);
  }

  Message time_baseline(const Message& question, bool& is_last) {
    const auto run = [&]() -> CudaResult<BaselineOutcome> {
      KW_DEVICE_TRY_VOID(open_library());
      KW_CUDA_TRY(const BaselineJob job, baseline_job_of(question));
      return time_on_device(*tasks_, *library_, job, baseline_algorithm_from_json(question.head.at("algorithm")),
                            fills_from_json(question.head.at("fills")), read_samples(question),
                            protocol_from_json(question.head.at("protocol")));
    };
    return outcome_message(run(), is_last);
  }

  Status open_library() {
    if (library_ != nullptr) return {};
    KW_TRY(library_, CublasLt::open(device_->info.driver_version));
    return {};
  }

  std::unique_ptr<DeviceContext> device_;
  std::unique_ptr<DeviceTasks> tasks_;
  std::unique_ptr<CublasLt> library_;
};

}  // namespace

int gpu_worker_main() {
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  Result<ChildChannel> channel = ChildChannel::take_over_stdin();
  if (!channel) {
    std::fputs(fmt::format("{}\n", channel.error().message).c_str(), stderr);
    return 2;
  }
  WorkerLoop loop;
  Message question;
  while (channel->receive(question)) {
    bool is_last = false;
    Message answer;
    try {
      answer = loop.answer(question, is_last);
    } catch (const std::exception& error) {  // border of the worker: a malformed message, host memory
      answer.head = {{"ok", false}, {"error", error.what()}, {"is_last", true}};
      is_last = true;
    }
    channel->send(answer);
    if (is_last) break;
  }
  // Without destructors: after a sticky error every driver call fails, and the driver frees all when the process ends.
  std::fflush(nullptr);
  _exit(0);
}

}  // namespace kw::tuner
