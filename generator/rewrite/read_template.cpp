// Reads a template's annotations from clang's AST into plain values: see template_info.h. One walk over the top-level declarations;
// rules are lowered by int_subset.cpp, comments are taken from the text.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <optional>
#include <set>

#include <clang/AST/Attr.h>
#include <clang/AST/DeclCXX.h>
#include <clang/AST/DeclTemplate.h>
#include <clang/AST/Expr.h>
#include <fmt/format.h>

#include "generator/rewrite/clang_places.h"
#include "generator/rewrite/clang_session.h"
#include "generator/rewrite/int_subset.h"
#include "generator/rewrite/template_info.h"
#include "generator/rewrite/template_text.h"

namespace kw::generator {
namespace {

/// One annotation of a declaration with its arguments.
struct Annotation {
  std::string kind;                   ///< "tune", "rule", ...
  std::vector<std::string> texts;     ///< string arguments
  std::vector<std::int64_t> numbers;  ///< the other arguments
};

std::string without_marks(std::string_view comment) {
  while (!comment.empty() && (comment.front() == '/' || comment.front() == '<' || comment.front() == '!' || comment.front() == ' '))
    comment.remove_prefix(1);
  while (!comment.empty() && (comment.back() == ' ' || comment.back() == '\r')) comment.remove_suffix(1);
  return std::string(comment);
}

std::string_view line_at(std::string_view text, std::size_t begin) {
  return text.substr(begin, std::min(text.find('\n', begin), text.size()) - begin);
}

/// The comment behind the declaration that starts at `begin` and ends at `end`, else the comment lines directly above it.
std::string doc_comment(std::string_view text, std::size_t begin, std::size_t end) {
  const std::string_view rest = line_at(text, end);
  if (const std::size_t at = rest.find("//"); at != std::string_view::npos && rest.find_first_not_of(" \t;,") == at)
    return without_marks(rest.substr(at));
  std::string doc;
  std::size_t line = text.rfind('\n', begin);
  while (line != std::string_view::npos && line > 0) {
    const std::size_t previous = text.rfind('\n', line - 1);
    const std::size_t start = previous == std::string_view::npos ? 0 : previous + 1;
    const std::string_view above = text.substr(start, line - start);
    const std::size_t first = above.find_first_not_of(" \t");
    if (first == std::string_view::npos || above.substr(first, 2) != "//") break;
    doc = without_marks(above.substr(first)) + (doc.empty() ? "" : " ") + doc;
    line = previous;
  }
  return doc;
}

class Reader {
 public:
  Reader(clang::ASTContext& context, const SourceTree& sources, const std::string& file)
      : context_(context), sources_(sources), file_(file) {}

  Result<TemplateInfo> read() {
    info_.file = file_;
    info_.contract = opening_comment(sources_.at(file_));
    read_scope(*context_.getTranslationUnitDecl());
    finish();
    if (diagnostics_.has_errors()) return fail(first_error(diagnostics_));
    return std::move(info_);
  }

 private:
  void refuse(clang::SourceLocation location, std::string message) {
    diagnostics_.add({Stage::kTemplate, Code::kBadInput, std::move(message), place_of(context_, location), {}});
  }

  std::vector<Annotation> annotations_of(const clang::Decl& decl) {
    std::vector<Annotation> found;
    for (const auto* attribute : decl.specific_attrs<clang::AnnotateAttr>()) {
      Annotation annotation{attribute->getAnnotation().str(), {}, {}};
      if (annotation.kind == "grid_constant" || annotation.kind == "cluster_dims" || annotation.kind == "maxnreg") continue;
      for (const clang::Expr* argument : attribute->args()) {
        const clang::Expr* value = argument->IgnoreParenImpCasts();
        if (const auto* constant = llvm::dyn_cast<clang::ConstantExpr>(value)) value = constant->getSubExpr()->IgnoreParenImpCasts();
        clang::Expr::EvalResult result;
        if (const auto* text = llvm::dyn_cast<clang::StringLiteral>(value)) {
          annotation.texts.push_back(text->getString().str());
        } else if (!value->isValueDependent() && value->EvaluateAsInt(result, context_)) {
          annotation.numbers.push_back(result.Val.getInt().getExtValue());
        } else {
          refuse(argument->getBeginLoc(), fmt::format("argument of annotation \"{}\": only string and integer literals", annotation.kind));
        }
      }
      found.push_back(std::move(annotation));
    }
    return found;
  }

  void read_scope(const clang::DeclContext& scope) {
    for (const clang::Decl* decl : scope.decls()) {
      if (decl->isImplicit() || !is_in_job(context_, decl->getLocation())) continue;
      if (const auto* linkage = llvm::dyn_cast<clang::LinkageSpecDecl>(decl)) {
        read_scope(*linkage);
      } else if (llvm::isa<clang::NamespaceDecl>(decl)) {
        refuse(decl->getLocation(), "a namespace: templates stand at global scope");
      } else if (const auto* function_template = llvm::dyn_cast<clang::FunctionTemplateDecl>(decl)) {
        read_decl(*function_template->getTemplatedDecl());
      } else if (const auto* class_template = llvm::dyn_cast<clang::ClassTemplateDecl>(decl)) {
        read_decl(*class_template->getTemplatedDecl());
      } else {
        read_decl(*decl);
      }
    }
  }

  void read_decl(const clang::Decl& decl) {
    if (const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl);
        function != nullptr && function->hasAttr<clang::CUDAGlobalAttr>())
      read_kernel(*function);
    for (const Annotation& annotation : annotations_of(decl)) read_annotation(decl, annotation);
    const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&decl);
    if (record == nullptr || !record->isThisDeclarationADefinition()) return;
    for (const clang::Decl* member : record->decls()) {
      if (member->isImplicit()) continue;
      for (const Annotation& annotation : annotations_of(*member)) {
        if ((annotation.kind == "tune" || annotation.kind == "bind") && record->getName() != "Config") {
          refuse(member->getLocation(), fmt::format("{}: only members of Config are tuned or bound", name_of(*member)));
        }
        read_annotation(*member, annotation);
      }
    }
  }

  static std::string name_of(const clang::Decl& decl) {
    const auto* named = llvm::dyn_cast<clang::NamedDecl>(&decl);
    return named == nullptr ? std::string("declaration") : named->getNameAsString();
  }

  void read_annotation(const clang::Decl& decl, const Annotation& annotation) {
    const auto& texts = annotation.texts;
    if (annotation.kind == "tune") return read_tunable(decl, annotation);
    if (annotation.kind == "rule")
      return texts.size() == 2 ? read_rule(decl, texts[0], texts[1]) : refuse(decl.getLocation(), "RULE takes a name and a sentence");
    if (texts.size() != 1 || !annotation.numbers.empty())
      return refuse(decl.getLocation(), fmt::format("annotation \"{}\" on {}: takes one string", annotation.kind, name_of(decl)));
    if (annotation.kind == "bind") return read_binding(decl, texts[0]);
    if (annotation.kind == "launch") return read_quantity(decl, texts[0], info_.launch);
    if (annotation.kind == "estimate") return read_quantity(decl, texts[0], info_.estimates);
    if (annotation.kind == "computes") return read_kernel_text(decl, texts[0], info_.computes);
    if (annotation.kind == "requires_arch") return read_kernel_text(decl, texts[0], info_.min_arch);
    if (annotation.kind == "hook") return read_hook(decl, texts[0]);
    refuse(decl.getLocation(), fmt::format("annotation \"{}\" on {}: unknown", annotation.kind, name_of(decl)));
  }

  std::string doc_of(const clang::Decl& decl) {
    const clang::SourceManager& source_manager = context_.getSourceManager();
    const auto begin = source_manager.getDecomposedLoc(source_manager.getExpansionLoc(decl.getBeginLoc()));
    const std::string_view text = source_manager.getBufferData(begin.first);
    const std::size_t name = source_manager.getDecomposedLoc(source_manager.getExpansionLoc(decl.getLocation())).second;
    const std::size_t semicolon = std::min(text.find(';', name), text.size() - 1);
    return doc_comment(text, begin.second, semicolon + 1);
  }

  void read_tunable(const clang::Decl& decl, const Annotation& annotation) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
    const bool fits = variable != nullptr && variable->isConstexpr() && variable->getType()->isIntegralOrEnumerationType() &&
                      (annotation.texts.size() == 1 || annotation.texts.size() == 2) && !annotation.numbers.empty();
    if (!fits)
      return refuse(decl.getLocation(),
                    fmt::format("{}: TUNE(\"key\", values...) stands before a static constexpr integer or bool", name_of(decl)));
    Tunable tunable{variable->getNameAsString(), annotation.texts[0], annotation.numbers, 0, doc_of(decl)};
    if (annotation.texts.size() == 2) tunable.problem_variable = annotation.texts[1];
    const clang::APValue* value = variable->evaluateValue();
    if (value == nullptr || !value->isInt()) return refuse(decl.getLocation(), fmt::format("{}: no integer constant", tunable.name));
    tunable.default_value = value->getInt().getExtValue();
    if (std::find(tunable.values.begin(), tunable.values.end(), tunable.default_value) == tunable.values.end()) {
      refuse(decl.getLocation(), fmt::format("{} = {}: the default is not among the values of TUNE", tunable.name, tunable.default_value));
    }
    if (!keys_.insert(tunable.key).second)
      refuse(decl.getLocation(), fmt::format("{}: key \"{}\" is taken by another tunable", tunable.name, tunable.key));
    info_.tunables.push_back(std::move(tunable));
  }

  void read_binding(const clang::Decl& decl, const std::string& source) {
    const auto* variable = llvm::dyn_cast<clang::VarDecl>(&decl);
    const bool is_type = llvm::isa<clang::TypedefNameDecl>(decl);
    const bool is_number = variable != nullptr && variable->isConstexpr() && variable->getType()->isIntegralOrEnumerationType();
    if (!is_type && !is_number)
      return refuse(decl.getLocation(), fmt::format("{}: BIND stands on a type alias or a static constexpr integer", name_of(decl)));
    info_.bindings.push_back({name_of(decl), source, is_type});
  }

  std::optional<IntExpr> lowered(const clang::Decl& decl) {
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl);
    if (function == nullptr || !function->isConstexpr() || function->getDescribedFunctionTemplate() != nullptr ||
        !function->getReturnType()->isIntegralOrEnumerationType()) {
      refuse(decl.getLocation(),
             fmt::format("{}: RULE, LAUNCH and ESTIMATE stand before a constexpr function that returns bool or an integer", name_of(decl)));
      return std::nullopt;
    }
    Result<IntExpr> expression = lower_int_function(context_, *function);
    if (expression) return *expression;
    Error error = expression.error();
    error.message = fmt::format("{}(): {}", name_of(decl), error.message);
    diagnostics_.add(std::move(error));
    return std::nullopt;
  }

  void read_rule(const clang::Decl& decl, const std::string& name, const std::string& why) {
    if (const std::optional<IntExpr> expression = lowered(decl)) {
      info_.rules.push_back({name, why, *expression, llvm::cast<clang::FunctionDecl>(decl).getNumParams() > 0});
    }
  }

  void read_quantity(const clang::Decl& decl, const std::string& name, std::vector<Quantity>& quantities) {
    const std::optional<IntExpr> expression = lowered(decl);
    if (!expression) return;
    const bool is_known = std::any_of(quantities.begin(), quantities.end(), [&](const Quantity& other) { return other.name == name; });
    if (is_known) return refuse(decl.getLocation(), fmt::format("{}: \"{}\" is stated twice", name_of(decl), name));
    quantities.push_back({name, *expression});
    for (const std::string_view prefix : {"workspace:", "workspace_zeroed:"}) {
      if (name.starts_with(prefix)) info_.workspaces.push_back(name.substr(prefix.size()));
    }
  }

  void read_kernel_text(const clang::Decl& decl, const std::string& text, std::string& target) {
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl);
    if (function == nullptr || !function->hasAttr<clang::CUDAGlobalAttr>())
      return refuse(decl.getLocation(), fmt::format("{}: COMPUTES and REQUIRES_ARCH stand on the kernel", name_of(decl)));
    target = text;
  }

  void read_hook(const clang::Decl& decl, const std::string& name) {
    const auto* function = llvm::dyn_cast<clang::FunctionDecl>(&decl);
    const auto* record = llvm::dyn_cast<clang::CXXRecordDecl>(&decl);
    const bool has_body =
        (function != nullptr && function->isThisDeclarationADefinition()) || (record != nullptr && record->isThisDeclarationADefinition());
    if (!has_body) return refuse(decl.getLocation(), fmt::format("{}: HOOK stands on a function or struct with its body", name_of(decl)));
    if (std::find(info_.hooks.begin(), info_.hooks.end(), name) != info_.hooks.end())
      return refuse(decl.getLocation(), fmt::format("hook \"{}\" is declared twice", name));
    info_.hooks.push_back(name);
  }

  std::string text_of(clang::QualType type) {
    clang::PrintingPolicy policy = context_.getPrintingPolicy();
    policy.Bool = true;
    std::string text = type.getAsString(policy);
    for (std::size_t at = text.find(" *"); at != std::string::npos; at = text.find(" *")) text.erase(at, 1);
    return text;
  }

  void read_kernel(const clang::FunctionDecl& kernel) {
    if (!info_.name.empty())
      return refuse(kernel.getLocation(), fmt::format("{}: a second kernel; a template has one", kernel.getNameAsString()));
    if (!kernel.isExternC() || kernel.getDescribedFunctionTemplate() != nullptr)
      refuse(kernel.getLocation(), fmt::format("{}: a kernel is extern \"C\" and no C++ template", kernel.getNameAsString()));
    info_.name = kernel.getNameAsString();
    for (const clang::ParmVarDecl* parameter : kernel.parameters()) {
      KernelParameter out{parameter->getNameAsString(), text_of(parameter->getType()), parameter->getType()->isPointerType(), {}};
      if (const clang::RecordDecl* record = parameter->getType()->getAsRecordDecl()) {
        for (const clang::FieldDecl* field : record->fields()) out.fields.emplace_back(text_of(field->getType()), field->getNameAsString());
      }
      info_.parameters.push_back(std::move(out));
    }
  }

  void finish() {
    const auto missing = [&](const std::string& what) { diagnostics_.add({Stage::kTemplate, Code::kBadInput, what, {file_, 0, 0}, {}}); };
    const std::size_t slash = file_.rfind('/');
    const std::string stem =
        file_.substr(slash == std::string::npos ? 0 : slash + 1, file_.rfind('.') - (slash == std::string::npos ? 0 : slash + 1));
    if (info_.name.empty()) return missing("no __global__ function: a template has one kernel");
    if (info_.name != stem) missing(fmt::format("kernel {}: a template's kernel is named like its file, {}", info_.name, stem));
    if (info_.computes.empty()) missing(fmt::format("kernel {}: COMPUTES(\"...\") is missing", info_.name));
    if (info_.min_arch.empty()) missing(fmt::format("kernel {}: REQUIRES_ARCH(\"...\") is missing", info_.name));
    const auto by_name = [](const Quantity& a, const Quantity& b) { return a.name < b.name; };
    std::sort(info_.launch.begin(), info_.launch.end(), by_name);
    std::sort(info_.estimates.begin(), info_.estimates.end(), by_name);
  }

  clang::ASTContext& context_;
  const SourceTree& sources_;
  const std::string& file_;
  TemplateInfo info_;
  std::set<std::string> keys_;
  Diagnostics diagnostics_;
};

}  // namespace

Result<TemplateInfo> read_template(const SourceTree& sources, const std::string& file) {
  KW_TRY_VOID(flatten_includes(sources, file));  // only for its checks of include and preprocessor lines
  KW_TRY_VOID(check_annotation_names(sources.at(file), file));
  ClangJob job{{}, file, Stage::kTemplate};
  for (const auto& [name, text] : sources) job.files.emplace(name, move_annotations_inward(text));
  Result<TemplateInfo> result = fail(Stage::kTemplate, Code::kInternal, "the parser gave no tree", {file, 0, 0});
  const Diagnostics diagnostics = parse_cuda(job, [&](clang::ASTContext& context) { result = Reader(context, sources, file).read(); });
  if (diagnostics.has_errors()) return fail(first_error(diagnostics));
  return result;
}

}  // namespace kw::generator
