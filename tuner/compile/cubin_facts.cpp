// Reader of ptxas reports and of the cubin's ELF sections. See cubin_facts.h.
// SPDX-License-Identifier: Apache-2.0
#include "tuner/compile/cubin_facts.h"

#include <cctype>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <vector>

#include <elf.h>
#include <fmt/format.h>

namespace kw::tuner {
namespace {

// Attributes of the .nv.info section (not documented; read from cubins of CUDA 12 and 13).
constexpr std::uint8_t kAttributeFrameSize = 0x11;
constexpr std::uint8_t kAttributeRegCount = 0x2f;
constexpr std::uint8_t kFormatSizedValue = 4;
constexpr int kReservedSmemBytesSm90 = 1024;  // system-reserved shared memory, counted in .nv.shared since sm_90

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// The number written directly before `unit`: ("12 bytes spill stores", " bytes spill stores") -> 12.
std::optional<int> number_before(std::string_view line, std::string_view unit) {
  const std::size_t end = line.find(unit);
  if (end == std::string_view::npos) return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && std::isdigit(static_cast<unsigned char>(line[begin - 1])) != 0) --begin;
  if (begin == end) return std::nullopt;
  return std::atoi(std::string(line.substr(begin, end - begin)).c_str());
}

/// Sums spills and stack over the kernel and the functions it calls; takes registers and shared memory of the kernel's own line.
bool read_log(std::string_view kernel_name, CompiledKernel& kernel) {
  bool is_ours = false, is_found = false;
  for (const std::string_view line : lines_of(kernel.log)) {
    if (line.find("Compiling entry function") != std::string_view::npos) {
      is_ours = line.find(fmt::format("'{}'", kernel_name)) != std::string_view::npos;
    }
    if (!is_ours) continue;
    kernel.spill_store_bytes += number_before(line, " bytes spill stores").value_or(0);
    kernel.spill_load_bytes += number_before(line, " bytes spill loads").value_or(0);
    kernel.stack_bytes += number_before(line, " bytes stack frame").value_or(0);
    if (const std::optional<int> registers = number_before(line, " registers")) {
      kernel.registers = *registers;
      kernel.static_smem_bytes = number_before(line, " bytes smem").value_or(0);
      is_found = true;
    }
  }
  return is_found;
}

/// Bounds-checked view of a 64-bit little-endian ELF file.
class ElfView {
 public:
  explicit ElfView(std::string_view bytes) : bytes_(bytes) {
    Elf64_Ehdr header{};
    if (!read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64) return;
    for (std::size_t index = 0; index < header.e_shnum; ++index) {
      Elf64_Shdr section{};
      if (!read(header.e_shoff + index * sizeof section, section)) return;
      sections_.push_back(section);
    }
    if (header.e_shstrndx < sections_.size()) names_ = content(sections_[header.e_shstrndx]);
  }

  const Elf64_Shdr* find(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_) {
      if (text_at(names_, section.sh_name) == name) return &section;
    }
    return nullptr;
  }

  std::string_view content(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size() || section.sh_size > bytes_.size() - section.sh_offset)
      return {};
    return bytes_.substr(section.sh_offset, section.sh_size);
  }

  /// Index in the symbol table of `name`, or 0.
  std::uint32_t symbol(std::string_view name) const {
    const Elf64_Shdr* table = find(".symtab");
    if (table == nullptr || table->sh_link >= sections_.size()) return 0;
    const std::string_view texts = content(sections_[table->sh_link]);
    const std::string_view symbols = content(*table);
    for (std::uint32_t index = 1; (index + 1) * sizeof(Elf64_Sym) <= symbols.size(); ++index) {
      Elf64_Sym entry{};
      std::memcpy(&entry, symbols.data() + index * sizeof entry, sizeof entry);
      if (text_at(texts, entry.st_name) == name) return index;
    }
    return 0;
  }

 private:
  template <typename T>
  bool read(std::size_t offset, T& value) const {
    if (offset > bytes_.size() || sizeof value > bytes_.size() - offset) return false;
    std::memcpy(&value, bytes_.data() + offset, sizeof value);
    return true;
  }
  static std::string_view text_at(std::string_view table, std::size_t offset) {
    if (offset >= table.size()) return {};
    const std::size_t end = table.find('\0', offset);
    return end == std::string_view::npos ? std::string_view{} : table.substr(offset, end - offset);
  }

  std::string_view bytes_, names_;
  std::vector<Elf64_Shdr> sections_;
};

/// Values of one attribute for a symbol: records are {u8 format, u8 attribute, u16 value or length}, then the payload when sized.
std::optional<int> info_value(std::string_view info, std::uint8_t attribute, std::uint32_t symbol) {
  std::size_t position = 0;
  while (position + 4 <= info.size()) {
    const auto format = static_cast<std::uint8_t>(info[position]);
    const auto kind = static_cast<std::uint8_t>(info[position + 1]);
    std::uint16_t length = 0;
    std::memcpy(&length, info.data() + position + 2, sizeof length);
    position += 4;
    if (format != kFormatSizedValue) continue;
    if (length > info.size() - position) break;
    if (kind == attribute && length >= 8) {
      std::uint32_t pair[2];
      std::memcpy(pair, info.data() + position, sizeof pair);
      if (pair[0] == symbol) return static_cast<int>(pair[1]);
    }
    position += length;
  }
  return std::nullopt;
}

/// ptxas C7510 to C7519: it serialises wgmma, or injects waits and arrives between them. The kernel is right and far too slow to be worth
/// timing. Of several lines the one that gives the reason, from its code on: "(C7511) Potential Performance Loss: ...".
std::string_view serialised_wgmma_line(std::string_view log) {
  std::string_view first;
  for (std::string_view line : lines_of(log)) {
    const std::size_t code = line.find("(C751");
    if (code == std::string_view::npos) continue;
    line.remove_prefix(code);
    if (line.find("serialized") != std::string_view::npos) return line;
    if (first.empty()) first = line;
  }
  return first;
}

}  // namespace

bool read_kernel_facts(std::string_view kernel_name, int compute_capability, CompiledKernel& kernel) {
  kernel.registers = kernel.spill_store_bytes = kernel.spill_load_bytes = kernel.stack_bytes = kernel.static_smem_bytes = 0;
  const ElfView elf(kernel.cubin);
  if (elf.find(fmt::format(".text.{}", kernel_name)) == nullptr) return false;
  if (read_log(kernel_name, kernel)) return true;
  const Elf64_Shdr* info_section = elf.find(".nv.info");
  const std::string_view info = info_section == nullptr ? std::string_view{} : elf.content(*info_section);
  const std::uint32_t symbol = elf.symbol(kernel_name);
  kernel.registers = info_value(info, kAttributeRegCount, symbol).value_or(0);
  kernel.stack_bytes = info_value(info, kAttributeFrameSize, symbol).value_or(0);
  if (const Elf64_Shdr* shared = elf.find(fmt::format(".nv.shared.{}", kernel_name))) {
    const int reserved_bytes = compute_capability >= 90 ? kReservedSmemBytesSm90 : 0;
    kernel.static_smem_bytes = std::max(0, static_cast<int>(shared->sh_size) - reserved_bytes);
  }
  return true;
}

TrialStatus judge_compiled(const CompiledKernel& kernel, bool refuses_spills, std::string& reason) {
  if (const std::string_view line = serialised_wgmma_line(kernel.log); !line.empty()) {
    reason = fmt::format("wgmma serialised by ptxas: {}: must overlap", line);
    return TrialStatus::kRefused;
  }
  const int spill_bytes = kernel.spill_store_bytes + kernel.spill_load_bytes;
  if (refuses_spills && spill_bytes > 0) {
    reason = fmt::format("spills: {} B stored, {} B loaded, with {} registers: must be none", kernel.spill_store_bytes,
                         kernel.spill_load_bytes, kernel.registers);
    return TrialStatus::kSpillsRefused;
  }
  return TrialStatus::kOk;
}

std::string first_complaint(std::string_view log) {
  std::string_view first;
  for (const std::string_view line : lines_of(log)) {
    if (line.find("error") != std::string_view::npos || line.find("fatal") != std::string_view::npos) return std::string(line);
    if (first.empty()) first = line;
  }
  return std::string(first);
}

}  // namespace kw::tuner
