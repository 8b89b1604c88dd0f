// Options, services, files and progress shared by the commands.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/cli/command.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <sstream>

#include "generator/emit/tune_values.h"
#include "tuner/session/spec_file.h"

namespace kw::tuner {
namespace po = boost::program_options;

std::string ParsedOptions::text(const std::string& name, const std::string& fallback) const {
  return has(name) ? values[name].as<std::string>() : fallback;
}
std::vector<std::string> ParsedOptions::list(const std::string& name) const {
  return has(name) ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}
bool ParsedOptions::flag(const std::string& name) const { return has(name) && values[name].as<bool>(); }

namespace {

std::vector<std::string> option_names(const po::options_description& described) {
  std::vector<std::string> names;
  for (const auto& option : described.options()) names.push_back("--" + option->long_name());
  return names;
}

tl::unexpected<Error> usage_error(const std::string& command, const std::string& why) {
  return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("{}: {} (see kernelwright {} --help)", command, why, command));
}

}  // namespace

Result<ParsedOptions> parse_options(const Invocation& invocation, const std::string& command, po::options_description described,
                                    const std::vector<std::string>& positional) {
  described.add_options()("help,h", "this text");
  po::options_description all = described;
  po::positional_options_description places;
  for (const std::string& name : positional) {
    const bool takes_rest = name.ends_with("...");
    const std::string plain = takes_rest ? name.substr(0, name.size() - 3) : name;
    if (takes_rest)
      all.add_options()(plain.c_str(), po::value<std::vector<std::string>>(), "");
    else
      all.add_options()(plain.c_str(), po::value<std::string>(), "");
    places.add(plain.c_str(), takes_rest ? -1 : 1);
  }
  ParsedOptions parsed;
  try {
    po::store(po::command_line_parser(invocation.arguments).options(all).positional(places).run(), parsed.values);
    po::notify(parsed.values);
  } catch (const po::unknown_option& unknown) {
    const std::string near = nearest_name(unknown.get_option_name(), option_names(described));
    return usage_error(command, fmt::format("unknown option {}{}", unknown.get_option_name(),
                                            near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  } catch (const po::error& error) {
    return usage_error(command, error.what());
  }
  for (const auto& [name, value] : parsed.values) {
    if (name == "help" || name == "cache" || name == "set" || value.defaulted()) continue;  // --cache "" is none; --set has its rules
    const auto* one = boost::any_cast<std::string>(&value.value());
    const auto* many = boost::any_cast<std::vector<std::string>>(&value.value());
    if ((one == nullptr || !one->empty()) && (many == nullptr || std::find(many->begin(), many->end(), "") == many->end())) continue;
    const bool is_option = std::none_of(positional.begin(), positional.end(), [&](const auto& p) { return p.starts_with(name); });
    return usage_error(command, fmt::format("{}{}: is empty", is_option ? "--" : "", name));
  }
  if (parsed.has("help")) {
    for (const Command& entry : commands())
      if (entry.name == command) fmt::print("usage: kernelwright {} {}\n{}\n\n", entry.name, entry.synopsis, entry.summary);
    std::ostringstream text;
    text << described;
    fmt::print("{}", text.str());
    parsed.is_help = true;
  }
  return parsed;
}

void add_service_options(po::options_description& described) {
  described.add_options()("db", po::value<std::string>(), "tuning database (default: $KERNELWRIGHT_DB, else the XDG data folder)");
  described.add_options()("device", po::value<std::string>(), "auto, cuda:N or none");
  described.add_options()("arch", po::value<std::string>(), "compile target, for example sm_90 (default: the device's)");
  described.add_options()("jobs", po::value<std::string>(), "compile processes at once (default: one per core)");
  described.add_options()("cache", po::value<std::string>(), "folder of compiled kernels; \"\" for none (default: the XDG cache folder)");
  described.add_options()("templates", po::value<std::string>(), "template folder to use in place of the built-in one");
}

std::string database_path(const Invocation& invocation, const ParsedOptions& options) {
  return options.has("db") ? options.text("db")
                           : db::default_database_path(invocation.kernelwright_db, invocation.xdg_data_home, invocation.home);
}

std::string default_cache_folder(const char* xdg_cache_home, const char* home) {
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (is_set(xdg_cache_home) && *xdg_cache_home == '/') return std::string(xdg_cache_home) + "/kernelwright/cubins";
  if (is_set(home)) return std::string(home) + "/.cache/kernelwright/cubins";
  return "kernelwright-cubins";  // no home: the current folder, as the database
}

Result<std::unique_ptr<Services>> make_services(const Invocation& invocation, const ParsedOptions& parsed,
                                                const std::string& default_device) {
  Options options;
  options.executable = invocation.executable;
  options.command_line = invocation.command_line;
  options.database_path = database_path(invocation, parsed);
  options.device = parsed.text("device", default_device);
  options.template_folder = parsed.text("templates");
  options.cache_folder = parsed.text("cache", default_cache_folder(invocation.xdg_cache_home, invocation.home));
  if (parsed.has("arch")) {
    options.arch = arch_from_text(parsed.text("arch"));
    if (!options.arch) {
      std::vector<std::string> names;
      for (const Arch arch : all_arches()) names.emplace_back(to_text(arch));
      return fail(Stage::kCommandLine, Code::kBadInput,
                  fmt::format("--arch {}: unknown; one of {}", parsed.text("arch"), fmt::join(names, ", ")));
    }
  }
  if (parsed.has("jobs")) {
    const std::string text = parsed.text("jobs");
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), options.num_compile_workers);
    if (error != std::errc{} || end != text.data() + text.size() || options.num_compile_workers < 1 || options.num_compile_workers > 1024)
      return fail(Stage::kCommandLine, Code::kBadInput, fmt::format("--jobs {}: expected a number from 1 to 1024", text));
  }
  return Services::create(std::move(options));
}

Result<double> seconds_from_text(const std::string& option, const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string unit(end, text.data() + text.size() - end);
  const double scale = unit == "ms" ? 1e-3 : unit == "m" ? 60 : unit == "h" ? 3600 : unit.empty() || unit == "s" ? 1 : -1;
  if (error != std::errc{} || scale < 0 || !(value > 0) || value * scale > 1e7)
    return fail(Stage::kCommandLine, Code::kBadInput,
                fmt::format("{} '{}': expected a time such as 60s, 2m or 1500ms, above 0", option, text));
  return value * scale;
}

Result<std::shared_ptr<const LoadedSpec>> load_spec_or_fail(const std::string& path) {
  Diagnostics diagnostics;
  auto spec = load_spec(path, diagnostics);
  if (spec != nullptr) return spec;
  std::string text = diagnostics.to_text();
  if (!text.empty() && text.back() == '\n') text.pop_back();
  Code code = Code::kBadInput;
  for (const Error& error : diagnostics.errors())
    if (error.code == Code::kNotFound) code = Code::kBadInput;
  return fail(Stage::kSpec, code, text);
}

Status tell_tune_values(const LoadedSpec& spec, Services& services) {
  if (spec.program->tune.values.empty()) return {};
  KW_TRY(const generator::TemplateLibrary* templates, services.templates());
  KW_TRY(const std::vector<std::string> notes, generator::check_tune_values(*templates, *spec.program, services.arch()));
  for (const std::string& note : notes) fmt::print(stderr, "{}\n", note);
  return {};
}

ProgressSink make_progress(const Invocation& invocation, const std::string& label) {
  struct State {
    std::string step;
    std::chrono::steady_clock::time_point start;
    std::size_t last_printed = 0;
  };
  auto state = std::make_shared<State>();
  const bool is_terminal = invocation.is_terminal;
  return [state, label, is_terminal](const std::string& step, std::size_t done, std::size_t total) {
    const auto now = std::chrono::steady_clock::now();
    if (state->step != step) *state = {step, now, 0};
    const double elapsed_s = std::chrono::duration<double>(now - state->start).count();
    const bool is_last = done >= total;
    if (is_terminal) {
      const double left_s = done > 0 && total > done ? elapsed_s / static_cast<double>(done) * static_cast<double>(total - done) : 0;
      fmt::print(stderr, "\r\x1b[K{}: {} {}/{}{}{}", label, step, done, total,
                 total > done ? fmt::format(", about {:.0f} s left", left_s) : "", is_last ? "\n" : "");
    } else if (is_last || done - state->last_printed >= 16) {
      fmt::print(stderr, "{}: {} {}/{}\n", label, step, done, total);
      state->last_printed = done;
    }
    std::fflush(stderr);
  };
}

}  // namespace kw::tuner
