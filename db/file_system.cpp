// The table of file systems; numbers from statfs(2) and linux/magic.h.
// SPDX-License-Identifier: Apache-2.0
#include "db/file_system.h"

#include <sys/vfs.h>

#include <array>
#include <string_view>

#include <fmt/format.h>

#include "db/database.h"

namespace kw::db {
namespace {

struct KnownFileSystem {
  std::int64_t magic;
  std::string_view name;
  bool is_local;
};

constexpr std::array kKnown = {
    KnownFileSystem{0xEF53, "ext4", true},          KnownFileSystem{0x58465342, "xfs", true},
    KnownFileSystem{0x9123683E, "btrfs", true},     KnownFileSystem{0x01021994, "tmpfs", true},
    KnownFileSystem{0x858458F6, "ramfs", true},     KnownFileSystem{0xF2F52010, "f2fs", true},
    KnownFileSystem{0x2FC12FC1, "zfs", true},       KnownFileSystem{0xCA451A4E, "bcachefs", true},
    KnownFileSystem{0x794C7630, "overlayfs", true}, KnownFileSystem{0x6969, "nfs", false},
    KnownFileSystem{0x517B, "smb", false},          KnownFileSystem{0xFE534D42, "smb2", false},
    KnownFileSystem{0xFF534D42, "cifs", false},     KnownFileSystem{0x65735546, "fuse", false},
    KnownFileSystem{0x01021997, "9p", false},       KnownFileSystem{0x0BD00BD0, "lustre", false},
    KnownFileSystem{0x00C36400, "ceph", false},     KnownFileSystem{0x47504653, "gpfs", false},
    KnownFileSystem{0x19830326, "beegfs", false},   KnownFileSystem{0x5346414F, "afs", false},
    KnownFileSystem{0x01161970, "gfs2", false},     KnownFileSystem{0x7461636F, "ocfs2", false},
    KnownFileSystem{0x786F4256, "vboxsf", false},
};

}  // namespace

std::int64_t file_system_magic(const std::string& folder) {
  struct statfs result{};
  if (statfs(folder.empty() ? "." : folder.c_str(), &result) != 0) return -1;
  return static_cast<std::int64_t>(static_cast<std::uint32_t>(result.f_type));  // some numbers have bit 31 set
}

std::string file_system_name(std::int64_t magic) {
  for (const KnownFileSystem& known : kKnown) {
    if (known.magic == magic) return std::string(known.name);
  }
  return fmt::format("0x{:X}", magic);
}

bool is_local_file_system(std::int64_t magic) {
  for (const KnownFileSystem& known : kKnown) {
    if (known.magic == magic) return known.is_local;
  }
  return false;
}

std::string default_database_path(const char* kernelwright_db, const char* xdg_data_home, const char* home) {
  const auto is_set = [](const char* value) { return value != nullptr && *value != '\0'; };
  if (is_set(kernelwright_db)) return kernelwright_db;
  if (is_set(xdg_data_home) && *xdg_data_home == '/') return std::string(xdg_data_home) + "/kernelwright/tuning.db";
  if (is_set(home)) return std::string(home) + "/.local/share/kernelwright/tuning.db";
  return "kernelwright-tuning.db";  // no home: the current folder
}

}  // namespace kw::db
