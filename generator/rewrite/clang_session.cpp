// Runs clang's front end on a text in memory: see clang_session.h. One of the few files that include clang's headers.
// SPDX-License-Identifier: Apache-2.0
#include "generator/rewrite/clang_session.h"

#include <clang/AST/ASTConsumer.h>
#include <clang/AST/ASTContext.h>
#include <clang/Basic/Diagnostic.h>
#include <clang/Basic/SourceManager.h>
#include <clang/Frontend/CompilerInstance.h>
#include <clang/Frontend/CompilerInvocation.h>
#include <clang/Frontend/FrontendAction.h>
#include <clang/Lex/PreprocessorOptions.h>
#include <llvm/Support/VirtualFileSystem.h>
#include <llvm/Support/thread.h>

#include <exception>

namespace kw::generator {

std::map<std::string, std::string> parser_prelude();  // generated from prelude.cuh

namespace {

constexpr const char* kRoot = "/kw/";
/// Clang walks nesting by recursion, with up to some KiB a level: more than the 8 MiB (or less) of the caller's stack may hold.
constexpr unsigned kStackBytes = 256U << 20;
constexpr const char* kPrelude = "/kw-prelude/prelude.cuh";

const std::string& prelude_text() {
  static const std::string kText = parser_prelude().at("prelude.cuh");
  return kText;
}

class Collector final : public clang::DiagnosticConsumer {
 public:
  Collector(Diagnostics& diagnostics, Stage stage) : diagnostics_(diagnostics), stage_(stage) {}

  void HandleDiagnostic(clang::DiagnosticsEngine::Level level, const clang::Diagnostic& info) override {
    if (level < clang::DiagnosticsEngine::Error) return;
    llvm::SmallString<256> message;
    info.FormatDiagnostic(message);
    SourceRange where;
    if (info.hasSourceManager() && info.getLocation().isValid()) {
      const clang::PresumedLoc place = info.getSourceManager().getPresumedLoc(info.getSourceManager().getExpansionLoc(info.getLocation()));
      if (place.isValid()) {
        const llvm::StringRef file = place.getFilename();
        where = {(file.starts_with(kRoot) ? file.substr(std::string_view(kRoot).size()) : file).str(), static_cast<int>(place.getLine()),
                 static_cast<int>(place.getColumn())};
      }
    }
    diagnostics_.add({stage_, Code::kBadInput, message.str().str(), where, {}});
  }

 private:
  Diagnostics& diagnostics_;
  Stage stage_;
};

class Consumer final : public clang::ASTConsumer {
 public:
  Consumer(const Diagnostics& diagnostics, const std::function<void(clang::ASTContext&)>& use) : diagnostics_(diagnostics), use_(use) {}
  void HandleTranslationUnit(clang::ASTContext& context) override {
    if (!diagnostics_.has_errors()) use_(context);
  }

 private:
  const Diagnostics& diagnostics_;
  const std::function<void(clang::ASTContext&)>& use_;
};

class Action final : public clang::ASTFrontendAction {
 public:
  Action(const Diagnostics& diagnostics, const std::function<void(clang::ASTContext&)>& use) : diagnostics_(diagnostics), use_(use) {}
  std::unique_ptr<clang::ASTConsumer> CreateASTConsumer(clang::CompilerInstance&, llvm::StringRef) override {
    return std::make_unique<Consumer>(diagnostics_, use_);
  }

 private:
  const Diagnostics& diagnostics_;
  const std::function<void(clang::ASTContext&)>& use_;
};

}  // namespace

namespace {

Diagnostics parse_on_this_stack(const ClangJob& job, const std::function<void(clang::ASTContext&)>& use) {
  Diagnostics diagnostics;
  const std::string main_path = kRoot + job.main_file;
  llvm::IntrusiveRefCntPtr<llvm::vfs::InMemoryFileSystem> files(new llvm::vfs::InMemoryFileSystem);
  files->setCurrentWorkingDirectory("/");
  files->addFile(kPrelude, 0, llvm::MemoryBuffer::getMemBuffer(prelude_text(), kPrelude));
  for (const auto& [name, text] : job.files) files->addFile(kRoot + name, 0, llvm::MemoryBuffer::getMemBuffer(text, name));

  const std::string constexpr_steps = "-fconstexpr-steps=" + std::to_string(job.max_constexpr_steps);
  // The options of the compiler proper, not of the driver: nothing is looked up on the machine.
  const char* const arguments[] = {"-triple",
                                   "nvptx64-nvidia-cuda",
                                   "-aux-triple",
                                   "x86_64-unknown-linux-gnu",
                                   "-target-cpu",
                                   "sm_90a",
                                   "-target-feature",
                                   "+ptx85",
                                   "-target-sdk-version=12.6",
                                   "-fcuda-is-device",
                                   "-fcuda-allow-variadic-functions",
                                   "-fdeprecated-macro",
                                   "-fsyntax-only",
                                   "-std=c++20",
                                   "-nostdsysteminc",
                                   "-nobuiltininc",
                                   "-nostdinc++",
                                   "-Wno-everything",
                                   "-fno-spell-checking",
                                   "-ferror-limit",
                                   "50",
                                   constexpr_steps.c_str(),
                                   "-I",
                                   "/kw",
                                   "-include",
                                   kPrelude,
                                   "-x",
                                   "cuda",
                                   main_path.c_str()};
  Collector collector(diagnostics, job.stage);
  clang::CompilerInstance compiler;
  compiler.createDiagnostics(&collector, /*ShouldOwnClient=*/false);
  if (!clang::CompilerInvocation::CreateFromArgs(compiler.getInvocation(), arguments, compiler.getDiagnostics())) return diagnostics;
  compiler.getFrontendOpts().DisableFree = false;
  compiler.createFileManager(files);
  compiler.createSourceManager(compiler.getFileManager());
  Action action(diagnostics, use);
  compiler.ExecuteAction(action);
  return diagnostics;
}

}  // namespace

Diagnostics parse_cuda(const ClangJob& job, const std::function<void(clang::ASTContext&)>& use) {
  Diagnostics diagnostics;
  std::exception_ptr failure;
  llvm::thread worker(std::optional<unsigned>(kStackBytes), [&] {
    try {
      diagnostics = parse_on_this_stack(job, use);
    } catch (...) {
      failure = std::current_exception();
    }
  });
  worker.join();
  if (failure) std::rethrow_exception(failure);
  return diagnostics;
}

Error first_error(const Diagnostics& diagnostics) {
  KW_CHECK(diagnostics.has_errors(), "asked for the first of no errors");
  Error first = diagnostics.errors().front();
  if (diagnostics.errors().size() > 1) first.detail = diagnostics.to_text();
  return first;
}

}  // namespace kw::generator
