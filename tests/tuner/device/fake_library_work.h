// How a fake library puts work on the fake driver's stream: a launch of the kernel "library_call_<number>us" with a pointer to this.
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kw::tuner::test {

struct FakeLibraryWork {
  virtual ~FakeLibraryWork() = default;
  virtual void run() const = 0;
};

}  // namespace kw::tuner::test
