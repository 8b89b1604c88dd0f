# Writes OUTPUT: one C++ function that returns the text of each file of NAMES (in FOLDER) by name.
# Called at build time by db/CMakeLists.txt; a raw string keeps the SQL readable in a debugger.
set(text "// Made by db/embed_sql.cmake from the .sql files of db/.\n// SPDX-License-Identifier: Apache-2.0\n#include \"db/schema.h\"\n\n")
string(APPEND text "namespace kw::db {\n\nstd::string embedded_sql(std::string_view name) {\n")
foreach(name IN LISTS NAMES)
  file(READ "${FOLDER}/${name}" sql)
  string(APPEND text "  if (name == \"${name}\")\n    return R\"kwsql(${sql})kwsql\";\n")
endforeach()
string(APPEND text "  return {};\n}\n\n}  // namespace kw::db\n")
file(WRITE "${OUTPUT}" "${text}")
