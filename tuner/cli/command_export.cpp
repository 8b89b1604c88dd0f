// kernelwright export: tuned kernels as a folder that builds alone.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include "generator/emit/export.h"
#include "tuner/cli/command.h"
#include "tuner/session/query_session.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

constexpr int kMaxFallbackConfigs = 2000;
constexpr const char* kReadmeMark = "Made by Kernelwright";

generator::ExportKernel kernel_of(const QueryAnswer& answer) {
  const db::TrialKey& key = answer.record->key;
  generator::ExportKernel kernel;
  kernel.variant_id = key.variant.id;
  kernel.source = key.variant.source;
  kernel.plan = answer.plan;
  kernel.arch = arch_from_text(key.variant.arch).value_or(Arch::kSm80);
  kernel.problem = problem_from_text(key.problem.dims_text).value_or(answer.asked);  // the shape it was tuned for
  kernel.device_model = key.device.model;
  kernel.toolchain = fmt::format("NVRTC {}, driver {}", key.toolchain.nvrtc, key.toolchain.driver);
  kernel.flags = fmt::format("--gpu-architecture={} -std=c++20", key.variant.arch);
  kernel.is_predicted = answer.is_predicted;
  kernel.median_us = answer.is_predicted ? 0 : answer.time_us;
  kernel.record_id = std::to_string(answer.record->id);
  return kernel;
}

/// The op with all dims at `extent`.
Problem problem_of_one_extent(const generator::Program& program, std::int64_t extent) {
  Problem problem;
  for (const generator::Dim& dim : program.dims) problem.dims[dim.name] = extent;
  for (const generator::Tensor& tensor : program.tensors) complete_strides(tensor.name, tensor.shape, tensor.strides, problem);
  return problem;
}

constexpr std::int64_t kHardExtent = 65537;  // rows that start at any address, of more elements than a CTA holds

/// Whether a plan takes short, odd and long extents.
bool takes_hard_problems(const LaunchPlan& plan, const generator::Program& program) {
  const auto takes = [&](std::int64_t extent) { return first_broken_constraint(plan, problem_of_one_extent(program, extent)).empty(); };
  return takes(1) && takes(33) && takes(kHardExtent);
}

struct Fallback {
  RankedProblem space;
  const RankedVariant* variant = nullptr;  ///< of the space; null: it has none for all extents
  bool takes_all = false;
};

/// The model's best of the variants that take hard problems, else of those with the fewest rules on the problem.
Result<Fallback> freest_of(const LoadedSpec& spec, const Problem& problem, Services& services) {
  KW_TRY(RankedProblem space, rank_problem(spec, services, problem));
  Fallback found;
  found.space = std::move(space);
  std::map<std::size_t, int> num_tried;  // of each template: enough to meet every kind of config that it has
  std::size_t num_rules = 0;
  for (const RankedVariant& ranked : found.space.ranked) {
    if (found.space.factories[ranked.factory].is_for_one_extent(ranked.ranked.config)) continue;
    if (++num_tried[ranked.factory] > kMaxFallbackConfigs) continue;
    KW_TRY(const LaunchPlan plan, found.space.factories[ranked.factory].plan(ranked.ranked.config));
    const bool takes_all = takes_hard_problems(plan, *spec.program);
    if (found.variant != nullptr &&
        (takes_all ? found.takes_all && plan.constraints.size() >= num_rules : found.takes_all || plan.constraints.size() >= num_rules))
      continue;
    found.variant = &ranked;
    found.takes_all = takes_all;
    num_rules = plan.constraints.size();
  }
  return found;
}

/// The variant that takes over where no tuned kernel is legal (gemm_simt: any strides and alignments, at most 2^31 - 1 tiles; row_sm80
/// streamed: rows of any length). Where none of the best for `problem` takes every shape, one that is chosen for a hard one.
Result<generator::ExportKernel> fallback_of(const LoadedSpec& spec, const Problem& problem, Services& services) {
  // What [tune] pins is for the tuned kernels: it may leave no variant that takes every shape.
  auto unpinned = std::make_shared<generator::Program>(*spec.program);
  unpinned->tune.values.clear();
  LoadedSpec free_spec = spec;
  free_spec.program = std::move(unpinned);
  KW_TRY(Fallback found, freest_of(free_spec, problem, services));
  if (!found.takes_all) {
    Result<Fallback> other = freest_of(free_spec, problem_of_one_extent(*spec.program, kHardExtent), services);
    if (other && other->takes_all) found = std::move(*other);
  }
  const RankedProblem& space = found.space;
  const RankedVariant* freest = found.variant;
  if (freest == nullptr)
    return fail(Stage::kSpace, Code::kNotSupported,
                fmt::format("{} at {}: no variant is legal that could serve as the fall-back", spec.program->name, problem.to_text()));
  KW_TRY(const generator::Variant variant, space.factories[freest->factory].emit(freest->ranked.config));
  generator::ExportKernel kernel;
  kernel.variant_id = variant.id;
  kernel.source = variant.source;
  kernel.plan = variant.plan;
  kernel.arch = services.arch();
  kernel.problem = problem;
  kernel.device_model = services.limits().model_name;
  kernel.toolchain = "any";
  kernel.flags = fmt::format("--gpu-architecture={} -std=c++20", kw::to_text(services.arch()));
  kernel.is_predicted = true;
  kernel.record_id = "none";
  return kernel;
}

/// The shapes to export: those of --set, else every shape of the op in the database.
Result<std::vector<std::string>> shapes_of(const ParsedOptions& parsed, Services& services) {
  if (parsed.has("set")) return shapes_of_set(parsed.list("set"));
  KW_TRY(db::Database * database, services.database(true));
  KW_TRY(const std::vector<db::OpRow> ops, database->ops(parsed.text("op")));
  std::set<std::string> shapes;
  for (const db::OpRow& op : ops) {
    KW_TRY(const std::vector<db::TrialRecord> records, database->records_of(op.identity, ""));
    for (const db::TrialRecord& record : records) shapes.insert(record.key.problem.dims_text);
  }
  if (shapes.empty()) shapes.insert("");  // answer_query names the nearest op
  return std::vector<std::string>(shapes.begin(), shapes.end());
}

std::string identifier(const std::string& name) {
  std::string text = name;
  for (char& c : text)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  return text;
}

/// A file that is there is overwritten only in a folder that an earlier export of the same op made: its README says so.
Status check_folder(const std::string& folder, const std::map<std::string, std::string>& files) {
  const auto first_line = [](const std::string& text) { return text.substr(0, text.find('\n')); };
  std::ostringstream readme;
  readme << std::ifstream(std::filesystem::path(folder) / "README.md").rdbuf();
  const bool is_export = readme.str().find(kReadmeMark) != std::string::npos;
  if (is_export && first_line(readme.str()) == first_line(files.at("README.md"))) return {};
  for (const auto& [name, text] : files) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::path(folder) / name, ignored))
      return fail(Stage::kCommandLine, Code::kBadInput,
                  fmt::format("{}/{} is there and {}: give an empty folder with -o", folder, name,
                              is_export ? "belongs to the export of another op" : "was not written by export"));
  }
  return {};
}

/// What --json prints: the files and, for each shape, the kernel that serves it.
nlohmann::json to_json(const std::string& folder, const std::map<std::string, std::string>& files, const nlohmann::json& shapes) {
  nlohmann::json out = {{"folder", folder}, {"files", nlohmann::json::array()}, {"shapes", shapes}};
  for (const auto& [name, text] : files) out["files"].push_back(name);
  return out;
}

nlohmann::json shape_json(const QueryAnswer& answer) {
  nlohmann::json out = {{"problem", answer.asked.to_text()}, {"match", kw::to_text(answer.match)}};
  out["kernel"] = answer.record ? nlohmann::json(answer.record->key.variant.id) : nlohmann::json();  // null: the fall-back serves it
  if (!answer.record) {
    out["why"] = answer.explanation;
    return out;
  }
  out["record"] = answer.record->id;
  out["arch"] = answer.record->key.variant.arch;
  out["is_predicted"] = answer.is_predicted;
  out["measured_problem"] = answer.record->key.problem.dims_text;
  return out;
}

/// What is exported: the answer to every shape, those without a kernel among them.
Result<std::vector<QueryAnswer>> answers_of(const ParsedOptions& parsed, Services& services) {
  KW_TRY(const std::vector<std::string> shapes, shapes_of(parsed, services));
  std::vector<QueryAnswer> answers;
  for (const std::string& shape : shapes) {
    QueryOptions options;
    options.op = parsed.text("op");
    options.set = shape;
    options.device_model = parsed.text("device-model");
    options.allows_other_device = parsed.flag("any-device");
    KW_TRY(QueryAnswer answer, answer_query(options, services));
    if (answer.record) KW_TRY_VOID(require_source(answer.record->key.variant));
    answers.push_back(std::move(answer));
  }
  return answers;
}

/// Error when no shape has a kernel: a folder of the fall-back alone is none that was asked for. The first shape says why.
Status require_kernel(const std::vector<QueryAnswer>& answers, const std::string& op) {
  const auto has_kernel = [](const QueryAnswer& answer) { return answer.record.has_value(); };
  if (std::any_of(answers.begin(), answers.end(), has_kernel)) return {};
  const std::string more = answers.size() > 1 ? fmt::format(" (and {} more shapes without a kernel)", answers.size() - 1) : "";
  return fail(
      Stage::kDatabase, Code::kNotFound,
      fmt::format("no tuned kernel of '{}' to export: {}: {}{}", op, answers.front().asked.to_text(), answers.front().explanation, more));
}

void print_shape(const QueryAnswer& answer, bool is_json) {
  if (!answer.record)
    fmt::print(stderr, "{}: {}; the fall-back serves it\n", answer.asked.to_text(), answer.explanation);
  else if (!is_json)
    fmt::print("{}: {} ({}{})\n", answer.asked.to_text(), answer.record->key.variant.id, kw::to_text(answer.match),
               answer.is_predicted ? ", predicted, not measured" : "");
}

}  // namespace

Result<int> run_export(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(),
                          "a shape to export: M=1024,N=4096 (may be repeated: a shape each; default: all that were tuned)");
  described.add_options()("output,o", po::value<std::string>(), "folder to write to");
  described.add_options()("device-model", po::value<std::string>(), "export what was tuned for this device model");
  described.add_options()("any-device", po::bool_switch(), "accept kernels measured on another device model");
  described.add_options()("json", po::bool_switch(), "print the files, and the kernel of each shape, as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "export", std::move(described), {"op"}));
  if (parsed.is_help) return 0;
  if (!parsed.has("op")) return fail(Stage::kCommandLine, Code::kBadInput, "export: give the name of an op");
  if (!parsed.has("output")) return fail(Stage::kCommandLine, Code::kBadInput, "export: give a folder with -o");
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed));

  const bool is_json = parsed.flag("json");
  KW_TRY(const std::vector<QueryAnswer> answers, answers_of(parsed, *services));
  KW_TRY_VOID(require_kernel(answers, parsed.text("op")));
  const std::shared_ptr<const LoadedSpec> spec = answers.back().spec;
  generator::ExportRequest request;
  request.command_line = invocation.command_line;
  KW_TRY(request.fallback, fallback_of(*answers.front().spec, answers.front().asked, *services));
  nlohmann::json shapes_json = nlohmann::json::array();
  for (const QueryAnswer& answer : answers) {
    print_shape(answer, is_json);
    shapes_json.push_back(shape_json(answer));
    if (answer.record) request.kernels.push_back(kernel_of(answer));
  }
  request.program = spec->program.get();
  request.op_name = identifier(spec->program->name);
  KW_TRY(const auto files, generator::export_files(request));
  const std::string folder = parsed.text("output");
  KW_TRY_VOID(check_folder(folder, files));
  for (const auto& [name, text] : files) {
    KW_TRY_VOID(write_file(folder + "/" + name, text));
  }
  if (is_json)
    fmt::print("{}\n", to_json(folder, files, shapes_json).dump(2));
  else
    fmt::print("{} files written to {}\n", files.size(), folder);
  return 0;
}

}  // namespace kw::tuner
