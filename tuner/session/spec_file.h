// Reads a spec and everything it names from disk, and makes the typed program of it: the first steps of the line.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <memory>
#include <string>

#include "generator/spec/op_spec.h"

namespace kw::tuner {

/// A spec with the texts it was made of. The texts are stored with the op, so that a query or an export needs no file.
struct LoadedSpec {
  std::shared_ptr<const generator::Program> program;
  std::string identity;
  std::string canonical_text;
  std::string main_file;                     ///< name of the spec file, without folders
  std::map<std::string, std::string> files;  ///< relative name -> text: the spec, `use`d specs, the functions file

  std::string files_json() const;
};

/// Reads `path`. On failure `diagnostics` holds every mistake with its place; the result is null.
std::shared_ptr<const LoadedSpec> load_spec(const std::string& path, Diagnostics& diagnostics);
/// The same from stored texts.
std::shared_ptr<const LoadedSpec> load_spec_from_json(const std::string& files_json, Diagnostics& diagnostics);

}  // namespace kw::tuner
