// Requests for the built-in templates, drawn at random among the legal configs; shared by the host and the NVRTC tests.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <random>

#include "generator/base/arch.h"
#include "generator/rewrite/builtin_templates.h"
#include "generator/rewrite/specialise.h"

namespace kw::generator::test {

/// "gemm/gemm_simt.cuh", ...: the templates among the embedded files.
inline std::vector<std::string> template_files(const SourceTree& sources) {
  std::vector<std::string> files;
  for (const auto& [name, text] : sources) {
    if (text.find("COMPUTES(") != std::string::npos && name != "parts/annotations.cuh") files.push_back(name);
  }
  return files;
}

/// Bytes of the element types that the draws below use.
inline std::int64_t type_bytes(const std::string& type) { return type == "double" ? 8 : type == "float" ? 4 : 2; }

inline bool is_legal(const TemplateInfo& info, const SpecialiseRequest& request) {
  IntBindings bindings = request.values;
  for (const auto& [name, type] : request.types) bindings["size_bytes." + name] = type_bytes(type);
  const IntBindings limits = limit_bindings(generic_device(arch_from_text(info.min_arch).value_or(Arch::kSm80)));
  bindings.insert(limits.begin(), limits.end());
  for (const Rule& rule : info.rules) {
    if (!rule.is_on_problem && rule.expression.evaluate(bindings).value_or(0) == 0) return false;
  }
  return true;
}

/// Default config for f16 operands, everything row-major.
inline SpecialiseRequest default_request(const SourceTree& sources, const TemplateInfo& info) {
  SpecialiseRequest request{&sources, &info, {}, {}, {}, "", info.name + "__test", info.name + ": a variant of the tests"};
  for (const Tunable& tunable : info.tunables) request.values[tunable.name] = tunable.default_value;
  for (const Binding& binding : info.bindings) {
    const bool is_k_of_a = binding.source == "unit_stride:A:k" || binding.source == "unit_stride:B:n";
    if (binding.is_type) {
      request.types[binding.name] = binding.source == "dtype:accumulate" ? "float" : "Half";
    } else {
      const bool is_count = binding.source.starts_with("num_") || binding.source.starts_with("bytes_");
      request.values[binding.name] = is_k_of_a || is_count ? 1 : 0;
    }
  }
  return request;
}

/// A legal request drawn by `random`: config, element types and transpositions. Returns the default one when 2,000 draws are all refused.
inline SpecialiseRequest random_request(const SourceTree& sources, const TemplateInfo& info, std::mt19937& random) {
  const SpecialiseRequest base = default_request(sources, info);
  const std::vector<std::string> types = {"Half", "BFloat16", "float"};
  for (int attempt = 0; attempt < 2000; ++attempt) {
    SpecialiseRequest request = base;
    for (const Tunable& tunable : info.tunables) request.values[tunable.name] = tunable.values[random() % tunable.values.size()];
    const std::string type = types[random() % types.size()];
    for (const Binding& binding : info.bindings) {
      if (binding.is_type && binding.source != "dtype:accumulate") request.types[binding.name] = type;
      if (binding.source == "uses_tf32") request.values[binding.name] = type == "float" ? 1 : 0;
    }
    for (const char* tensor : {"A", "B"}) {
      const bool is_k = random() % 2 == 0;
      for (const Binding& binding : info.bindings) {
        if (!binding.source.starts_with(std::string("unit_stride:") + tensor)) continue;
        request.values[binding.name] = binding.source.ends_with(":k") == is_k ? 1 : 0;
      }
    }
    if (is_legal(info, request)) return request;
  }
  return base;
}

}  // namespace kw::generator::test
