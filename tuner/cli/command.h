// What every command of the executable shares: parsed options, output, exit codes. One file a command.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/program_options.hpp>
#include <functional>
#include <string>
#include <vector>

#include "generator/base/error.h"
#include "tuner/session/services.h"

namespace kw::tuner {

/// Environment and command line, read once in main.
struct Invocation {
  std::string executable;
  std::string command_line;
  std::vector<std::string> arguments;  ///< behind the command's name
  const char* home = nullptr;
  const char* xdg_data_home = nullptr;
  const char* xdg_cache_home = nullptr;
  const char* kernelwright_db = nullptr;
  bool is_terminal = false;  ///< standard error is one: progress is a line that rewrites itself
};

struct Command {
  std::string name;
  std::string synopsis;  ///< "SPEC... [--db F] ..."
  std::string summary;
  std::function<Result<int>(const Invocation&)> run;
};
/// All commands, in the order of `--help`.
const std::vector<Command>& commands();

// The commands, one file each.
Result<int> run_generate(const Invocation& invocation);
Result<int> run_tune(const Invocation& invocation);
Result<int> run_verify(const Invocation& invocation);
Result<int> run_simulate(const Invocation& invocation);
Result<int> run_query(const Invocation& invocation);
Result<int> run_export(const Invocation& invocation);
Result<int> run_explain(const Invocation& invocation);
Result<int> run_show(const Invocation& invocation);
Result<int> run_db(const Invocation& invocation);
Result<int> run_replay(const Invocation& invocation);
Result<int> run_doctor(const Invocation& invocation);

/// Parses `invocation.arguments`: named options of `described` plus positional ones of the given names (the last takes all the rest when
/// it ends in "..."). Unknown options are refused with the nearest known one. `--help` prints and returns an empty map with help set.
struct ParsedOptions {
  boost::program_options::variables_map values;
  bool is_help = false;
  bool has(const std::string& name) const { return values.count(name) > 0; }
  std::string text(const std::string& name, const std::string& fallback = "") const;
  std::vector<std::string> list(const std::string& name) const;
  bool flag(const std::string& name) const;
};
Result<ParsedOptions> parse_options(const Invocation& invocation, const std::string& command,
                                    boost::program_options::options_description described, const std::vector<std::string>& positional);

/// --db, --device, --arch, --jobs, --cache, --templates: options of every command that needs services.
void add_service_options(boost::program_options::options_description& described);
Result<std::unique_ptr<Services>> make_services(const Invocation& invocation, const ParsedOptions& options,
                                                const std::string& default_device = "auto");
std::string database_path(const Invocation& invocation, const ParsedOptions& options);
/// $XDG_CACHE_HOME when absolute, else ~/.cache, else the current folder: the rule of db::default_database_path.
std::string default_cache_folder(const char* xdg_cache_home, const char* home);

/// "60s", "2m", "1500ms", "90" (seconds).
Result<double> seconds_from_text(const std::string& option, const std::string& text);

/// Loads a spec or turns its diagnostics into one error that lists them all.
struct LoadedSpec;
Result<std::shared_ptr<const LoadedSpec>> load_spec_or_fail(const std::string& path);
/// Tells on standard error which templates take which [tune] values not. Error: values that no template takes.
Status tell_tune_values(const LoadedSpec& spec, Services& services);

/// Writes a file through a temporary name and a rename, at the end of symbolic links; makes folders. Devices and FIFOs are written
/// through. Error kBadInput for an empty path or a folder, else kIo: the path and the reason.
Status write_file(const std::string& path, const std::string& text);

/// Progress on standard error: one line that rewrites itself on a terminal with the time left, plain lines elsewhere.
ProgressSink make_progress(const Invocation& invocation, const std::string& label);

}  // namespace kw::tuner
