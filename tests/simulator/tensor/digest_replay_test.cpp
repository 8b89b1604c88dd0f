// Replays the digests that bench/record_mma_digests.cu wrote on a GPU: every block of 8192 seeded tiles of every form must give the same
// digest in exact mode. The plain test takes the first blocks of each form; "[.all]" all 2^20 tiles (minutes).
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <atomic>
#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <vector>

#include "simulator/tensor/digest_forms.h"
#include "simulator/tensor/mma.h"
#include "simulator/tensor/wgmma.h"
#include "tests/catch.h"

namespace kw::simulate {
namespace {

namespace fs = std::filesystem;

struct Digest {
  std::uint64_t block, value;
};
struct RecordedFile {
  TensorArch arch = TensorArch::kSm90;
  std::map<std::string, std::vector<Digest>> forms;
};

/// "# mma digests: NVIDIA H200, compute capability 9.0, ..." and lines "form block hex".
RecordedFile read_recorded(const fs::path& file) {
  RecordedFile recorded;
  std::ifstream in(file);
  std::string line;
  while (std::getline(in, line)) {
    int major = 0, minor = 0;
    const std::size_t at = line.find("compute capability ");
    if (line.starts_with('#')) {
      if (at != std::string::npos && std::sscanf(line.c_str() + at, "compute capability %d.%d", &major, &minor) == 2) {
        recorded.arch = tensor_arch_for(10 * major + minor);
      }
      continue;
    }
    std::istringstream words(line);
    std::string form;
    Digest digest{};
    REQUIRE(static_cast<bool>(words >> form >> digest.block >> std::hex >> digest.value));
    recorded.forms[form].push_back(digest);
  }
  return recorded;
}

/// Where accumulator (row, column) lies: registers of a warp are row pairs of eight columns; f16 packs two columns, f64 takes two words.
struct Place {
  std::size_t register_index, lane;
  int shift;
};
Place accumulator_place(const DigestForm& form, int registers_per_warp, int row, int column) {
  const int warp = form.is_wgmma ? row / 16 : 0;
  const int row_blocks = form.m == 8 ? 1 : 2;
  const int value = 2 * row_blocks * (column / 8) + 2 * (row / 8 % row_blocks) + column % 2;
  const int lane = 4 * (row % 8) + column % 8 / 2;
  const bool is_half = form.d == ElementType::kF16;
  const int words = form.d == ElementType::kF64 ? 2 : 1;
  const int index = warp * registers_per_warp + (is_half ? value / 2 : value * words);
  return {static_cast<std::size_t>(index), static_cast<std::size_t>(lane), is_half ? 16 * (value % 2) : 0};
}

using Registers = std::vector<LaneRegister>;

void put_accumulators(const DigestForm& form, int registers_per_warp, std::uint64_t tile, Registers& registers) {
  for (LaneRegister& one : registers) one.lane.fill(0);
  for (int row = 0; row < form.m; ++row) {
    for (int column = 0; column < form.n; ++column) {
      const Place place = accumulator_place(form, registers_per_warp, row, column);
      const std::uint64_t element = digest_element(form.d, tile, 2, row, column);
      registers[place.register_index].lane[place.lane] |= static_cast<std::uint32_t>(element) << place.shift;
      if (form.d == ElementType::kF64) registers[place.register_index + 1].lane[place.lane] = static_cast<std::uint32_t>(element >> 32);
    }
  }
}

std::uint64_t digest_of(const DigestForm& form, int registers_per_warp, std::uint64_t tile, const Registers& registers) {
  std::uint64_t digest = 0;
  for (int row = 0; row < form.m; ++row) {
    for (int column = 0; column < form.n; ++column) {
      const Place place = accumulator_place(form, registers_per_warp, row, column);
      std::uint64_t result = registers[place.register_index].lane[place.lane] >> place.shift;
      if (form.d == ElementType::kF16) result &= 0xffff;
      if (form.d == ElementType::kF64) result |= static_cast<std::uint64_t>(registers[place.register_index + 1].lane[place.lane]) << 32;
      digest += digest_term(tile, row, column, result);
    }
  }
  return digest;
}

/// Register j of lane 4g+q holds elements of row g (+8 for odd j of A): 16 bytes of K a row and register.
void put_operand(ElementType type, std::uint64_t tile, int operand, int row_blocks, int k_extent, Registers& registers) {
  const int es = size_bytes(type), per_register = 16 / es;
  for (LaneRegister& one : registers) one.lane.fill(0);
  for (int row = 0; row < 8 * row_blocks; ++row) {
    for (int k = 0; k < k_extent; ++k) {
      const auto index = static_cast<std::size_t>(row / 8 + row_blocks * (k / per_register)) * (es == 8 ? 2 : 1);
      const int byte = k % per_register * es;
      const std::uint64_t element = digest_element(type, tile, operand, row, k);
      if (es == 8) {  // f64: a register pair holds four elements of K, one a lane
        const auto pair = static_cast<std::size_t>(2 * (row / 8 + row_blocks * (k / 4))),
                   lane = static_cast<std::size_t>(4 * (row % 8) + k % 4);
        registers[pair].lane[lane] = static_cast<std::uint32_t>(element);
        registers[pair + 1].lane[lane] = static_cast<std::uint32_t>(element >> 32);
        continue;
      }
      registers[index].lane[static_cast<std::size_t>(4 * (row % 8) + byte / 4)] |= static_cast<std::uint32_t>(element) << 8 * (byte % 4);
    }
  }
}

std::uint64_t mma_block_digest(const DigestForm& form, TensorArch arch, std::uint64_t first_tile, int count) {
  const MmaForm made = make_mma_form(form.m, form.n, form.k, form.a, form.b, form.d).value();
  Registers a(static_cast<std::size_t>(made.a_registers)), b(static_cast<std::size_t>(made.b_registers)),
      d(static_cast<std::size_t>(made.d_registers));
  std::uint64_t digest = 0;
  for (std::uint64_t tile = first_tile; tile < first_tile + static_cast<std::uint64_t>(count); ++tile) {
    put_operand(form.a, tile, 0, form.m / 8, form.k, a);
    put_operand(form.b, tile, 1, 1, form.k, b);
    put_accumulators(form, made.d_registers, tile, d);
    mma(made, {TensorMode::kExact, arch}, a, b, d, d);
    digest += digest_of(form, made.d_registers, tile, d);
  }
  return digest;
}

WgmmaTile wgmma_operand(const DigestForm& form, std::uint64_t tile, int operand) {
  const int rows = operand == 0 ? form.m : form.n;
  WgmmaTile result{.rows = rows, .k = form.k, .bits = {}};
  result.bits.reserve(static_cast<std::size_t>(rows * form.k));
  for (int row = 0; row < rows; ++row) {
    for (int k = 0; k < form.k; ++k) {
      result.bits.push_back(static_cast<std::uint32_t>(digest_element(operand == 0 ? form.a : form.b, tile, operand, row, k)));
    }
  }
  return result;
}

std::uint64_t wgmma_block_digest(const DigestForm& form, TensorArch arch, std::uint64_t first_tile, int count) {
  const WgmmaForm made =
      make_wgmma_form({.n = form.n, .k = form.k, .a = form.a, .b = form.b, .d = form.d, .is_a_in_registers = form.is_a_in_registers})
          .value();
  Registers d(static_cast<std::size_t>(kWarpgroupWarps * made.d_registers));
  std::uint64_t digest = 0;
  for (std::uint64_t tile = first_tile; tile < first_tile + static_cast<std::uint64_t>(count); ++tile) {
    put_accumulators(form, made.d_registers, tile, d);
    wgmma(made, {TensorMode::kExact, arch}, wgmma_operand(form, tile, 0), wgmma_operand(form, tile, 1), true, d);
    digest += digest_of(form, made.d_registers, tile, d);
  }
  return digest;
}

std::uint64_t block_digest(const DigestForm& form, TensorArch arch, std::uint64_t first_tile, int count) {
  return form.is_wgmma ? wgmma_block_digest(form, arch, first_tile, count) : mma_block_digest(form, arch, first_tile, count);
}

/// One recorded block to compute again.
struct ReplayJob {
  std::string name;  ///< file, form and block
  const DigestForm* form = nullptr;
  TensorArch arch = TensorArch::kSm90;
  Digest recorded;
};

std::vector<ReplayJob> replay_jobs(std::size_t blocks_a_form) {
  std::vector<ReplayJob> jobs;
  for (const auto& entry : fs::directory_iterator(fs::path(KW_SOURCE_DIR) / "tests/simulator/tensor/digests")) {
    if (entry.path().extension() != ".txt") continue;
    const RecordedFile recorded = read_recorded(entry.path());
    for (const DigestForm& form : kDigestForms) {
      const auto found = recorded.forms.find(form.name);
      if (found == recorded.forms.end()) continue;
      for (std::size_t index = 0; index < std::min(blocks_a_form, found->second.size()); ++index) {
        const Digest& digest = found->second[index];
        jobs.push_back(
            {fmt::format("{}: {} block {}", entry.path().filename().string(), form.name, digest.block), &form, recorded.arch, digest});
      }
    }
  }
  return jobs;
}

/// Computes all blocks on all cores; the names of those that differ.
std::vector<std::string> blocks_that_differ(const std::vector<ReplayJob>& jobs) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::vector<std::string> different;
  const auto work = [&] {
    for (std::size_t i = next++; i < jobs.size(); i = next++) {
      const ReplayJob& job = jobs[i];
      if (block_digest(*job.form, job.arch, job.recorded.block * kDigestBlockTiles, kDigestBlockTiles) == job.recorded.value) continue;
      const std::scoped_lock lock(mutex);
      different.push_back(job.name);
    }
  };
  {
    std::vector<std::jthread> workers;
    for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) workers.emplace_back(work);
  }
  return different;
}

void replay(std::size_t blocks_a_form) {
  const std::vector<ReplayJob> jobs = replay_jobs(blocks_a_form);
  CHECK(jobs.size() >= std::size(kDigestForms) * blocks_a_form);  // the H200's file holds every form
  CHECK(blocks_that_differ(jobs) == std::vector<std::string>{});
}

}  // namespace

TEST_CASE("the first blocks of the digests recorded on a GPU are reproduced bit for bit") { replay(kIsSanitized ? 0 : 1); }

TEST_CASE("all digests recorded on a GPU are reproduced bit for bit", "[.all]") { replay(kDigestBlocks); }

TEST_CASE("a digest sees one changed bit of one result") {
  for (const DigestForm& form : kDigestForms) {
    CAPTURE(form.name);
    const std::uint64_t digest = block_digest(form, TensorArch::kSm90, 40, 8);
    CHECK(digest == block_digest(form, TensorArch::kSm90, 40, 8));
    CHECK(digest != block_digest(form, TensorArch::kSm90, 48, 8));
    CHECK(digest_term(1, 2, 3, 4) != digest_term(1, 2, 3, 5));
  }
}

TEST_CASE("the fraction bits of an architecture show in its digests") {
  CHECK(block_digest(kDigestForms[0], TensorArch::kSm80, 0, 64) != block_digest(kDigestForms[0], TensorArch::kSm90, 0, 64));
}

TEST_CASE("one block of every form takes moderate time", "[.speed]") {
  std::ostringstream text;
  for (const DigestForm& form : kDigestForms) {
    text << form.name << " " << std::hex << block_digest(form, TensorArch::kSm90, 0, kDigestBlockTiles) << "\n";
  }
  WARN(text.str());
}

}  // namespace kw::simulate
