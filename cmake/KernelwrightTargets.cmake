# kw_library(name SOURCES ... LINKS ...): one static library a folder, with the project's warnings.
# kw_test(name LABEL host|nvrtc|gpu SOURCES ... LINKS ...): one Catch2 executable a test folder.
add_library(kw_warnings INTERFACE)
target_compile_options(kw_warnings INTERFACE -Wall -Wextra -Wconversion -Wno-sign-conversion -fno-strict-aliasing)
if(KERNELWRIGHT_WERROR)
  target_compile_options(kw_warnings INTERFACE -Werror)
endif()
if(KERNELWRIGHT_SANITIZE)
  target_compile_options(kw_warnings INTERFACE -fsanitize=${KERNELWRIGHT_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(kw_warnings INTERFACE -fsanitize=${KERNELWRIGHT_SANITIZE})
endif()
target_include_directories(kw_warnings INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(kw_warnings INTERFACE FMT_HEADER_ONLY=1 TOML_HEADER_ONLY=1)

function(kw_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kw_warnings ${ARG_LINKS})
endfunction()

function(kw_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kw_test_main ${ARG_LINKS})
  target_compile_definitions(${name} PRIVATE KW_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KW_BINARY_DIR="${PROJECT_BINARY_DIR}")
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES LABELS ${ARG_LABEL} TIMEOUT 600)
endfunction()

# kw_embed_files(name FUNCTION f OUTPUT file.cpp ROOT dir FILES ...): a library with kw::generator::f(), the files by name.
function(kw_embed_files name)
  cmake_parse_arguments(ARG "" "FUNCTION;OUTPUT;ROOT" "FILES" ${ARGN})
  list(TRANSFORM ARG_FILES PREPEND "${ARG_ROOT}/" OUTPUT_VARIABLE inputs)
  string(REPLACE ";" "," joined "${ARG_FILES}")
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${ARG_OUTPUT}")
  add_custom_command(OUTPUT "${output}"
    COMMAND ${CMAKE_COMMAND} -DOUTPUT=${output} -DROOT=${ARG_ROOT} -DFILES=${joined} -DFUNCTION=${ARG_FUNCTION} -P "${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake"
    DEPENDS ${inputs} "${PROJECT_SOURCE_DIR}/cmake/EmbedFiles.cmake" VERBATIM)
  add_library(${name} STATIC "${output}")
  target_link_libraries(${name} PUBLIC kw_warnings)
endfunction()
