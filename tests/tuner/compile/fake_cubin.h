// A tiny ELF file with one kernel and a ptxas report, as the scripted compiler of the tests returns them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>

#include <elf.h>

namespace kw::tuner::test {

/// An ELF with sections "", ".shstrtab" and ".text.<kernel>".
inline std::string fake_cubin(const std::string& kernel, const std::string& code) {
  std::string names(1, '\0');
  const auto name_offset = [&](const std::string& name) {
    const auto offset = static_cast<Elf64_Word>(names.size());
    names += name + '\0';
    return offset;
  };
  Elf64_Shdr sections[3] = {};
  sections[1].sh_name = name_offset(".shstrtab");
  sections[2].sh_name = name_offset(".text." + kernel);
  sections[1].sh_type = SHT_STRTAB;
  sections[2].sh_type = SHT_PROGBITS;
  sections[1].sh_offset = sizeof(Elf64_Ehdr) + sizeof sections;
  sections[1].sh_size = names.size();
  sections[2].sh_offset = sections[1].sh_offset + names.size();
  sections[2].sh_size = code.size();
  Elf64_Ehdr header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header;
  header.e_shnum = 3;
  header.e_shstrndx = 1;
  std::string file(reinterpret_cast<const char*>(&header), sizeof header);
  file.append(reinterpret_cast<const char*>(sections), sizeof sections);
  return file + names + code;
}

inline std::string ptxas_report(const std::string& kernel, int registers, int spill_bytes) {
  return "ptxas info    : Compiling entry function '" + kernel + "' for 'sm_80'\nptxas info    : Function properties for " + kernel +
         "\n    " + std::to_string(spill_bytes) + " bytes stack frame, " + std::to_string(spill_bytes) + " bytes spill stores, " +
         std::to_string(spill_bytes) + " bytes spill loads\nptxas info    : Used " + std::to_string(registers) +
         " registers, used 1 barriers, 2048 bytes smem, 400 bytes cmem[0]\n";
}

}  // namespace kw::tuner::test
