// What the file system under the database can do. WAL needs shared memory and byte-range locks of one machine: it is used only on
// file systems known to be local; anything else (NFS, CIFS, FUSE, unknown) gets the rollback journal.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace kw::db {

/// f_type of statfs(2) for `folder`; -1 when the call fails.
std::int64_t file_system_magic(const std::string& folder);
/// "ext4", "nfs", ...; the number in hexadecimal when unknown.
std::string file_system_name(std::int64_t magic);
bool is_local_file_system(std::int64_t magic);

}  // namespace kw::db
