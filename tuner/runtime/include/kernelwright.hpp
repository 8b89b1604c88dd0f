// C++ over kernelwright.h: owners instead of handles, exceptions instead of statuses. Header only, C++17; nothing of it crosses the
// library's border. The meaning of every call stands in kernelwright.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <stdexcept>
#include <string>
#include <utility>

#include "kernelwright.h"

namespace kernelwright {

class Error : public std::runtime_error {
 public:
  Error(kw_status status, const std::string& sentence) : std::runtime_error(sentence), status_(status) {}
  kw_status status() const { return status_; }

 private:
  kw_status status_;
};

inline void check(kw_status status) {
  if (status != KW_OK) throw Error(status, kw_last_error());
}

/// A stored kernel at one problem. Movable; may be launched by several threads at once.
class Kernel {
 public:
  explicit Kernel(kw_kernel* handle) : handle_(handle) {}
  ~Kernel() { kw_kernel_release(handle_); }
  Kernel(Kernel&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Kernel& operator=(Kernel&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  kw_match match() const { return kw_kernel_match(handle_); }
  std::string explanation() const { return kw_kernel_explanation(handle_); }
  std::string variant() const { return kw_kernel_variant(handle_); }
  std::size_t workspace_bytes() const { return kw_workspace_bytes(handle_); }
  std::size_t zeroed_workspace_bytes() const { return kw_zeroed_workspace_bytes(handle_); }

  void prepare() { check(kw_prepare(handle_)); }
  void launch(const kw_arguments& arguments, void* stream) { check(kw_launch(handle_, &arguments, stream)); }
  /// For kernels without workspaces.
  void launch(std::initializer_list<void*> tensors, void* stream, std::initializer_list<double> scalars = {}) {
    launch({tensors.begin(), tensors.size(), scalars.begin(), scalars.size(), nullptr, 0, nullptr, 0}, stream);
  }
  kw_kernel* handle() const { return handle_; }

 private:
  kw_kernel* handle_;
};

class Database {
 public:
  explicit Database(const std::string& path) {
    if (kw_version() >> 16 != KW_VERSION_MAJOR || kw_version() < KW_VERSION)
      throw Error(KW_INTERNAL, "libkernelwright.so has another version than the header kernelwright.h");
    check(kw_open(path.c_str(), &handle_));
  }
  ~Database() { kw_close(handle_); }
  Database(Database&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Database& operator=(Database&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }

  Kernel find(const char* op, const kw_value* values, std::size_t num_values, unsigned flags = 0) {
    kw_kernel* kernel = nullptr;
    check(kw_find(handle_, op, values, num_values, flags, &kernel));
    return Kernel(kernel);
  }
  Kernel find(const char* op, std::initializer_list<kw_value> values, unsigned flags = 0) {
    return find(op, values.begin(), values.size(), flags);
  }
  kw_database* handle() const { return handle_; }

 private:
  kw_database* handle_ = nullptr;
};

}  // namespace kernelwright
