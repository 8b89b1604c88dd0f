// Reads the functions that a spec calls: finds them in the file, checks their signatures, has their bodies lowered
// (lower_user_function.h). See read_user_functions.h.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/read_user_functions.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include <clang/AST/Attr.h>
#include <clang/AST/DeclTemplate.h>
#include <fmt/format.h>

#include "generator/rewrite/clang_places.h"
#include "generator/rewrite/clang_session.h"
#include "generator/rewrite/lower_user_function.h"
#include "generator/rewrite/user_text.h"

namespace kw::generator {
namespace {

constexpr const char* kJobFile = "functions.cuh";
constexpr int kMaxConstexprSteps = 1000;  // of one constant: user functions have no loops, and clang takes some us a step

class FunctionReader {
 public:
  FunctionReader(clang::ASTContext& context, const std::string& file_name, Diagnostics& diagnostics)
      : context_(context), file_name_(file_name), diagnostics_(diagnostics) {
    collect(*context.getTranslationUnitDecl());
  }

  void read(const std::string& name, UserFunctions& functions) {
    const auto found = known_.find(name);
    UserFunction& out = functions[name];
    out.name = name;
    if (found == known_.end()) {
      std::vector<std::string> names;
      for (const auto& [known, decls] : known_) names.push_back(known);
      const std::string nearest = nearest_name(name, names);
      diagnostics_.add(
          {Stage::kSpec,
           Code::kBadInput,
           fmt::format("{}: no such function in the file{}", name, nearest.empty() ? "" : fmt::format("; did you mean {}?", nearest)),
           {file_name_, 0, 0},
           {}});
      return;
    }
    const clang::FunctionDecl& function = *found->second.back();
    if (!read_signature(function, found->second.size(), out)) return;
    Result<ExprRef> body = lower_user_function(context_, function);
    if (!body) return add(body.error());
    out.body = *body;
  }

 private:
  void collect(const clang::DeclContext& scope) {
    for (const clang::Decl* decl : scope.decls()) {
      if (const auto* inner = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) collect(*inner);
      const clang::FunctionDecl* function = llvm::dyn_cast<clang::FunctionDecl>(decl);
      if (const auto* function_template = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl))
        function = function_template->getTemplatedDecl();
      if (function == nullptr || !is_in_job(context_, function->getLocation())) continue;
      auto& decls = known_[function->getNameAsString()];
      const bool is_redeclaration = !decls.empty() && decls.back()->getCanonicalDecl() == function->getCanonicalDecl();
      if (is_redeclaration) decls.pop_back();
      decls.push_back(function);
    }
  }

  void add(Error error) {
    if (error.where.file == kJobFile) error.where.file = file_name_;
    diagnostics_.add(std::move(error));
  }
  bool refuse(clang::SourceLocation location, std::string message) {
    add({Stage::kSpec, Code::kBadInput, std::move(message), place_of(context_, location), {}});
    return false;
  }

  bool read_signature(const clang::FunctionDecl& function, std::size_t num_overloads, UserFunction& out) {
    const std::string name = function.getNameAsString();
    bool is_right = true;
    for (const clang::ParmVarDecl* parameter : function.parameters()) {
      const std::optional<DType> type = dtype_of(parameter->getType());
      if (!type)
        is_right =
            refuse(parameter->getLocation(), fmt::format("{}(): parameter {} has type {}: float, double, int, long long or bool, by value",
                                                         name, parameter->getNameAsString(), parameter->getType().getAsString()));
      out.parameter_types.push_back(type.value_or(DType::kF32));
    }
    const std::optional<DType> result = dtype_of(function.getReturnType());
    if (!result)
      is_right = refuse(function.getLocation(), fmt::format("{}(): returns {}: float, double, int, long long or bool", name,
                                                            function.getReturnType().getAsString()));
    out.return_type = result.value_or(DType::kF32);
    if (num_overloads > 1)
      is_right = refuse(function.getLocation(), fmt::format("{}(): {} overloads: a called function has one", name, num_overloads));
    if (function.getDescribedFunctionTemplate() != nullptr)
      is_right = refuse(function.getLocation(), fmt::format("{}(): a C++ template", name));
    if (!function.hasAttr<clang::CUDADeviceAttr>())
      is_right = refuse(function.getLocation(), fmt::format("{}(): not a __device__ function", name));
    return is_right;
  }

  clang::ASTContext& context_;
  const std::string& file_name_;
  Diagnostics& diagnostics_;
  std::map<std::string, std::vector<const clang::FunctionDecl*>> known_;
};

}  // namespace

UserFunctions read_user_functions(std::string_view text, const std::string& file_name, const std::vector<std::string>& names,
                                  Diagnostics& diagnostics) {
  UserFunctions functions;
  for (const std::string& name : names) functions[name].name = name;  // refused until read
  const Diagnostics refused = check_user_text(text, file_name);
  for (const Error& error : refused.errors()) diagnostics.add(error);
  if (refused.has_errors()) return functions;
  ClangJob job{{{kJobFile, std::string(text)}}, kJobFile, Stage::kSpec, kMaxConstexprSteps};
  const Diagnostics found = parse_cuda(job, [&](clang::ASTContext& context) {
    FunctionReader reader(context, file_name, diagnostics);
    for (const std::string& name : std::set<std::string>(names.begin(), names.end())) reader.read(name, functions);
  });
  for (Error error : found.errors()) {
    if (error.where.file == kJobFile) error.where.file = file_name;
    diagnostics.add(std::move(error));
  }
  return functions;
}

}  // namespace kw::generator
