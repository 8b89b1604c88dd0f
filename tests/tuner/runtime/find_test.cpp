// Opening and finding through the C interface: which stored kernel answers, and what is refused with which sentence.
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "tests/tuner/runtime/fake_device.h"
#include "tests/tuner/runtime/library_fixture.h"

using namespace kw::tuner::test;
using kw::TrialStatus;

TEST_CASE("a shape that was measured is found exactly, and the getters tell what was stored") {
  LibraryFixture fixture({record_of({.median_us = 12.5})});
  const FoundKernel kernel = fixture.find("double", {{"n", 1000}});
  REQUIRE(kernel.status == KW_OK);
  CHECK(kw_kernel_match(kernel.handle) == KW_EXACT);
  CHECK(std::string(kw_kernel_variant(kernel.handle)) == "double_it");
  CHECK(std::string(kw_kernel_config(kernel.handle)) == "BLOCK_M=1");
  CHECK(std::string(kw_kernel_measured_at(kernel.handle)) == "n=1000");
  CHECK(std::string(kw_kernel_explanation(kernel.handle)) == "measured at this shape on this device model (Fake H200)");
  CHECK(kw_kernel_time_us(kernel.handle) == 12.5);
  CHECK(kw_kernel_num_tensors(kernel.handle) == 2);
  CHECK(std::string(kw_kernel_tensor_name(kernel.handle, 1)) == "y");
  CHECK(std::string(kw_kernel_tensor_name(kernel.handle, 2)).empty());
  CHECK(kw_kernel_num_scalars(kernel.handle) == 0);
  CHECK(kw_workspace_bytes(kernel.handle) == 0);
}

TEST_CASE("the fastest row answers, a near shape by its distance, a far one as modelled") {
  LibraryFixture fixture({record_of({.kernel = "double_slow", .median_us = 30}), record_of({.kernel = "double_fast", .median_us = 20}),
                          record_of({.kernel = "double_far", .n = 64000, .median_us = 1})});
  CHECK(fixture.variant_of({{"n", 1000}}) == "double_fast");
  CHECK(fixture.variant_of({{"n", 1500}}) == "double_fast");
  CHECK(fixture.match_of({{"n", 1500}}) == KW_NEAR);
  CHECK(fixture.variant_of({{"n", 50000}}) == "double_far");
  CHECK(fixture.match_of({{"n", 4000}}) == KW_MODELLED);
  CHECK(fixture.find("double", {{"n", 4000}}).explanation() == "legal here; measured only at n=1000, chosen by its distance");
}

TEST_CASE("a kernel whose constraint the shape breaks gives way to a slower one that is legal") {
  LibraryFixture fixture(
      {record_of({.kernel = "double_vector", .median_us = 5}, needs_multiple_of(8)), record_of({.kernel = "double_any", .median_us = 50})});
  CHECK(fixture.variant_of({{"n", 1000}}) == "double_vector");
  CHECK(fixture.variant_of({{"n", 1001}}) == "double_any");
}

TEST_CASE("a shape that no kernel takes is refused with the constraint and its numbers") {
  LibraryFixture fixture({record_of({}, needs_multiple_of(8))});
  const FoundKernel kernel = fixture.find("double", {{"n", 1001}});
  CHECK(kernel.status == KW_NOT_FOUND);
  CHECK(kernel.handle == nullptr);
  CHECK_THAT(kernel.error, contains_text("kw_find: ") && contains_text("no stored kernel of 'double' is legal at n=1001 on Fake H200") &&
                               contains_text("n_divisible: vectors of x (n % 8 == 0: 1 == 0 is false)"));
  const FoundKernel nameless = fixture.find("", {{"n", 1000}});
  CHECK(nameless.status == KW_BAD_ARGUMENT);
  CHECK_THAT(nameless.error, contains_text("op is empty"));
  const FoundKernel wide = fixture.find("double", {{"n", 1000}, {"x.align", std::int64_t{1} << 31}});
  CHECK(wide.status == KW_BAD_ARGUMENT);
  CHECK_THAT(wide.error, contains_text("x.align = 2147483648: an alignment is at most 1073741824 bytes"));
  const FoundKernel huge = fixture.find("double", {{"n", std::int64_t{1} << 45}});
  CHECK(huge.status == KW_NOT_FOUND);
  CHECK_THAT(huge.error, contains_text("2^46 bytes"));
}

TEST_CASE("an early rung's row answers only where the full protocol has none") {
  LibraryFixture early({record_of({.kernel = "double_early", .median_us = 1, .protocol = "v1-cold-early"})});
  CHECK(early.variant_of({{"n", 1000}}) == "double_early");
  LibraryFixture both({record_of({.kernel = "double_early", .median_us = 1, .protocol = "v1-cold-early"}),
                       record_of({.kernel = "double_full", .n = 2000, .median_us = 9})});
  CHECK(both.variant_of({{"n", 1000}}) == "double_full");
}

TEST_CASE("another device's kernel comes only when asked for, and only if its code runs here") {
  LibraryFixture fixture({record_of({.kernel = "double_80", .device_model = "Fake A100", .arch = "sm_80"}),
                          record_of({.kernel = "double_90", .median_us = 99, .device_model = "Other H200", .arch = "sm_90"})});
  const FoundKernel refused = fixture.find("double", {{"n", 1000}});
  CHECK(refused.status == KW_NOT_FOUND);
  CHECK_THAT(refused.error, contains_text("no kernel of 'double' is stored for Fake H200; there are some for Fake A100, Other H200"));
  const FoundKernel other = fixture.find("double", {{"n", 1000}}, KW_FIND_OTHER_DEVICE);
  REQUIRE(other.status == KW_OK);
  CHECK(other.variant() == "double_90");
  CHECK(kw_kernel_match(other.handle) == KW_OTHER_DEVICE);
}

TEST_CASE("predictions of a machine without a GPU are another device's kernels without a time") {
  LibraryFixture fixture({record_of({.device_model = "none:sm_90", .status = TrialStatus::kPredicted, .protocol = "model"})});
  const FoundKernel kernel = fixture.find("double", {{"n", 1000}}, KW_FIND_OTHER_DEVICE);
  REQUIRE(kernel.status == KW_OK);
  CHECK(kw_kernel_time_us(kernel.handle) == 0);
  CHECK(kernel.explanation() == "predicted for another device, not measured: none:sm_90 at n=1000");
}

TEST_CASE("a kernel whose code garbage collection took gives way to the next, and is named when there is none") {
  LibraryFixture fixture({record_of({.kernel = "double_gone", .median_us = 1, .cubin = ""}, needs_multiple_of(8)),
                          record_of({.kernel = "double_kept", .median_us = 20})});
  CHECK(fixture.variant_of({{"n", 1000}}) == "double_kept");
  LibraryFixture gone({record_of({.kernel = "double_gone", .cubin = ""})});
  CHECK_THAT(gone.find("double", {{"n", 1000}}).error, contains_text("double_gone: its code was taken by `kernelwright db gc`"));
}

TEST_CASE("an unknown op, dim, stride or alignment is refused and the nearest is named") {
  LibraryFixture fixture({record_of({})});
  const FoundKernel op = fixture.find("duoble", {{"n", 1000}});
  CHECK(op.status == KW_NOT_FOUND);
  CHECK_THAT(op.error, contains_text("no op 'duoble'") && contains_text("did you mean 'double'?"));
  const FoundKernel dim = fixture.find("double", {{"N", 1000}});
  CHECK(dim.status == KW_BAD_ARGUMENT);
  CHECK_THAT(dim.error, contains_text("double: 'N' is no dim, free stride or alignment of it: did you mean 'n'?"));
  CHECK_THAT(fixture.find("double", {{"n", 1000}, {"x.stride0", 2}}).error, contains_text("'x.stride0' is no dim"));
  CHECK_THAT(fixture.find("double", {{"n", 1000}, {"z.align", 2}}).error, contains_text("'z.align' is no dim"));
  CHECK_THAT(fixture.find("double", {}).error, contains_text("dim n has no value"));
}

TEST_CASE("values that are no numbers of a problem are refused by name") {
  LibraryFixture fixture({record_of({})});
  for (const auto& [values, sentence] : std::vector<std::pair<std::vector<kw_value>, std::string>>{
           {{{"n", -1}}, "n = -1: must not be negative"},
           {{{"n", 1}, {"n", 2}}, "n is given twice"},
           {{{"n", 8}, {"x.align", 3}}, "x.align = 3: an alignment is a power of two"},
           {{{"", 8}}, "values[0].name is ''"},
           {{{"n=1,m", 8}}, "values[0].name is 'n=1,m'"},
           {{{nullptr, 8}}, "values[0].name is null"}}) {
    const FoundKernel kernel = fixture.find("double", values);
    INFO(sentence);
    CHECK(kernel.status == KW_BAD_ARGUMENT);
    CHECK_THAT(kernel.error, contains_text(sentence));
  }
}

TEST_CASE("free strides that are left out are those of a dense tensor, and given ones are part of the problem") {
  const auto free_stride = [](kw::LaunchPlan& plan) { plan.tensors[0].strides = {kw::IntExpr::variable("x.stride0")}; };
  LibraryFixture fixture({record_of({.kernel = "double_dense", .dims_text = "n=1000,x.stride0=1"}, free_stride),
                          record_of({.kernel = "double_strided", .dims_text = "n=1000,x.stride0=2"}, free_stride)});
  CHECK(fixture.variant_of({{"n", 1000}}) == "double_dense");
  CHECK(fixture.variant_of({{"n", 1000}, {"x.stride0", 2}}) == "double_strided");
  CHECK(fixture.match_of({{"n", 1000}, {"x.stride0", 2}}) == KW_EXACT);
  CHECK(fixture.match_of({{"n", 1000}}) == KW_EXACT);
}

TEST_CASE("null pointers and unknown flags are refused, null handles are harmless") {
  LibraryFixture fixture({record_of({})});
  kw_kernel* kernel = nullptr;
  const kw_value n{"n", 1000};
  CHECK(kw_open(nullptr, nullptr) == KW_BAD_ARGUMENT);
  kw_database* none = nullptr;
  CHECK(kw_open(nullptr, &none) == KW_BAD_ARGUMENT);
  CHECK(std::string(kw_last_error()) == "kw_open: path is null");
  CHECK(kw_find(nullptr, "double", &n, 1, 0, &kernel) == KW_BAD_ARGUMENT);
  CHECK(std::string(kw_last_error()) == "kw_find: database is null");
  CHECK(kw_find(fixture.database(), nullptr, &n, 1, 0, &kernel) == KW_BAD_ARGUMENT);
  CHECK(kw_find(fixture.database(), "double", nullptr, 1, 0, &kernel) == KW_BAD_ARGUMENT);
  CHECK(kw_find(fixture.database(), "double", &n, 1, 0, nullptr) == KW_BAD_ARGUMENT);
  CHECK(kw_find(fixture.database(), "double", &n, 1, 6, &kernel) == KW_BAD_ARGUMENT);
  CHECK(std::string(kw_last_error()) == "kw_find: flags = 0x6: only KW_FIND_OTHER_DEVICE (1) is known");
  CHECK(kernel == nullptr);
  kw_close(nullptr);
  kw_kernel_release(nullptr);
  CHECK(std::string(kw_kernel_variant(nullptr)).empty());
  CHECK(kw_prepare(nullptr) == KW_BAD_ARGUMENT);
  CHECK(kw_launch(nullptr, nullptr, nullptr) == KW_BAD_ARGUMENT);
}

TEST_CASE("without a current context a find says so and makes none") {
  LibraryFixture fixture({record_of({})});
  fixture.device().use_none();
  const FoundKernel kernel = fixture.find("double", {{"n", 1000}});
  CHECK(kernel.status == KW_NO_CONTEXT);
  CHECK_THAT(kernel.error, contains_text("no CUDA context is current on this thread") && contains_text("the library makes none"));
}

TEST_CASE("a database that is missing, foreign, damaged or newer is refused with its path") {
  LibraryFixture fixture({record_of({})});
  const std::string folder = std::filesystem::path(fixture.path()).parent_path().string();
  CHECK(open_failure(folder + "/absent.db").first == KW_NOT_FOUND);
  CHECK_THAT(open_failure(folder + "/absent.db").second, contains_text("absent.db: no such database"));
  CHECK_FALSE(std::filesystem::exists(folder + "/absent.db"));
  CHECK(open_failure(folder).first == KW_BAD_DATABASE);
  kw::db::test::write_file(folder + "/text.db", std::string(4096, 'x'));
  CHECK(open_failure(folder + "/text.db").first == KW_BAD_DATABASE);
  constexpr std::int64_t kUserVersionOffset = 60;  // SQLite file format, big-endian
  std::filesystem::copy_file(fixture.path(), folder + "/newer.db");
  kw::db::test::overwrite(folder + "/newer.db", kUserVersionOffset, std::string("\0\0\0\x63", 4));
  CHECK(open_failure(folder + "/newer.db").first == KW_BAD_DATABASE);
  CHECK_THAT(open_failure(folder + "/newer.db").second, contains_text("schema version 99 is newer"));
}

TEST_CASE("a database that is cut short after it was opened fails a find, not the process") {
  LibraryFixture fixture({record_of({})});
  std::filesystem::resize_file(fixture.path(), 4096);
  const FoundKernel kernel = fixture.find("double", {{"n", 1000}});
  CHECK(kernel.status == KW_BAD_DATABASE);
  CHECK_THAT(kernel.error, contains_text(fixture.path()));
}

TEST_CASE("a stored plan that cannot be read back is a fault of the database") {
  kw::db::TrialRecord record = record_of({});
  record.key.variant.plan_json = R"({"launches": 3})";
  LibraryFixture fixture({record});
  const FoundKernel kernel = fixture.find("double", {{"n", 1000}});
  CHECK(kernel.status == KW_BAD_DATABASE);
  CHECK_THAT(kernel.error, contains_text("launch plan"));
}
