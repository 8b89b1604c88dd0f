// kernelwright show: source, launch plan, PTX or SASS of a stored variant.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "generator/base/json_text.h"
#include "tuner/cli/command.h"
#include "tuner/session/query_session.h"
#include "tuner/session/ranked_problem.h"

namespace kw::tuner {
namespace po = boost::program_options;
namespace {

/// The record that `name` means: a variant id, else the answer of a query for the op.
Result<db::TrialRecord> find_record(const ParsedOptions& parsed, Services& services) {
  KW_TRY(db::Database * database, services.database(true));
  const std::string name = parsed.text("name");
  KW_TRY(const std::vector<db::TrialRecord> records, database->records_of("", name));
  if (!records.empty()) return records.front();
  QueryOptions options;
  options.op = name;
  KW_TRY(options.set, single_shape_of_set(parsed.list("set"), "show"));
  options.allows_other_device = true;
  KW_TRY(const QueryAnswer answer, answer_query(options, services));
  if (!answer.record) return fail(Stage::kDatabase, Code::kNotFound, answer.explanation);
  return *answer.record;
}

Result<LaunchPlan> stored_plan(const db::VariantRow& variant) {
  KW_TRY(const nlohmann::json json, json_from_text(variant.plan_json));
  KW_TRY(LaunchPlan plan, launch_plan_from_json(json));
  if (plan.launches.empty())
    return fail(Stage::kDatabase, Code::kBadInput, fmt::format("{}: its stored launch plan has no launch", variant.id));
  return plan;
}

Result<std::string> compile_to_ptx(const db::TrialRecord& record, Services& services) {
  const db::VariantRow& variant = record.key.variant;
  KW_TRY_VOID(require_source(variant));
  KW_TRY(const LaunchPlan plan, stored_plan(variant));
  KW_TRY(CompilePool * pool, services.compile_pool());
  CompileRequest request;
  request.source = variant.source;
  request.arch = arch_from_text(variant.arch).value_or(services.arch());
  name_kernels(plan, request);
  request.wants_ptx = true;
  const CompileOutcome outcome = pool->submit(std::move(request)).get();
  if (outcome.kernel.ptx.empty())  // a kernel that spills has PTX all the same
    return fail(Stage::kCompile, Code::kToolchain,
                fmt::format("{} for {}: {}", variant.id, variant.arch, outcome.error.empty() ? "the compiler gave no PTX" : outcome.error));
  return outcome.kernel.ptx;
}

/// Runs NVIDIA's disassembler, which we cannot ship, on the stored cubin.
Result<std::string> disassemble(const db::TrialRecord& record) {
  if (record.binary.cubin.empty())
    return fail(Stage::kDatabase, Code::kNotFound,
                fmt::format("{}: its cubin is not kept: it did not compile, or `db gc` took it", record.key.variant.id));
  const std::string path = (std::filesystem::temp_directory_path() / fmt::format("kernelwright-{}.cubin", getpid())).string();
  KW_TRY_VOID(write_file(path, record.binary.cubin));
  std::string text;
  int status = -1;
  for (const char* tool : {"nvdisasm -c", "cuobjdump --dump-sass"}) {
    FILE* pipe = popen(fmt::format("{} '{}' 2>/dev/null", tool, path).c_str(), "r");
    if (pipe == nullptr) continue;
    text.clear();
    char buffer[4096];
    for (std::size_t got = 0; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, got);
    status = pclose(pipe);
    if (status == 0) break;
  }
  std::error_code ignored;
  std::filesystem::remove(path, ignored);
  if (status != 0)
    return fail(Stage::kCompile, Code::kToolchain,
                "no disassembler: install the CUDA toolkit, or PyPI's nvidia-cuda-nvdisasm, and put nvdisasm on the PATH");
  return text;
}

}  // namespace

Result<int> run_show(const Invocation& invocation) {
  po::options_description described("options");
  add_service_options(described);
  described.add_options()("set", po::value<std::vector<std::string>>(), "dims of the problem, when an op is named");
  described.add_options()("plan", po::bool_switch(), "the launch plan");
  described.add_options()("ptx", po::bool_switch(), "PTX, compiled again");
  described.add_options()("sass", po::bool_switch(), "machine code (needs nvdisasm or cuobjdump)");
  described.add_options()("json", po::bool_switch(), "everything as JSON");
  KW_TRY(const ParsedOptions parsed, parse_options(invocation, "show", std::move(described), {"name"}));
  if (parsed.is_help) return 0;
  if (!parsed.has("name")) return fail(Stage::kCommandLine, Code::kBadInput, "show: give an op or a variant");
  KW_TRY(const std::unique_ptr<Services> services, make_services(invocation, parsed));
  KW_TRY(const db::TrialRecord record, find_record(parsed, *services));
  KW_TRY(const nlohmann::json plan, json_from_text(record.key.variant.plan_json));
  if (parsed.flag("json")) {
    fmt::print("{}\n", nlohmann::json{{"variant", record.key.variant.id},
                                      {"config", record.key.variant.config},
                                      {"arch", record.key.variant.arch},
                                      {"source", record.key.variant.source},
                                      {"source_hash", record.key.variant.source_hash},
                                      {"launch_plan", plan},
                                      {"registers", record.binary.registers},
                                      {"spill_store_bytes", record.binary.spill_store_bytes},
                                      {"compile_log", record.binary.log}}
                           .dump(2));
  } else if (parsed.flag("plan")) {
    fmt::print("{}\n", plan.dump(2));
  } else if (parsed.flag("ptx")) {
    KW_TRY(const std::string ptx, compile_to_ptx(record, *services));
    fmt::print("{}", ptx);
  } else if (parsed.flag("sass")) {
    KW_TRY(const std::string sass, disassemble(record));
    fmt::print("{}", sass);
  } else {
    KW_TRY_VOID(require_source(record.key.variant));
    fmt::print("{}", record.key.variant.source);
  }
  return 0;
}

}  // namespace kw::tuner
