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
# With sanitizers the rest is built without optimisation: these are where the tests spend their time.
set(KW_OPTIMISED_WITH_SANITIZERS kw_evaluator kw_space test_templates_emulated
  kw_simulate_ptx kw_simulate_tensor kw_simulate_machine kw_simulate_execute kw_simulate_launch)
function(kw_optimise_with_sanitizers name)
  if(KERNELWRIGHT_SANITIZE AND name IN_LIST KW_OPTIMISED_WITH_SANITIZERS)
    target_compile_options(${name} PRIVATE -O1)
  endif()
endfunction()
target_include_directories(kw_warnings INTERFACE "${PROJECT_SOURCE_DIR}")
target_compile_definitions(kw_warnings INTERFACE TOML_HEADER_ONLY=1)
# Debian has fmt as a shared library alone. Compiled once it saves a quarter to a half of the time of most files.
target_link_libraries(kw_warnings INTERFACE $<IF:$<BOOL:${KERNELWRIGHT_PORTABLE}>,fmt::fmt-header-only,fmt::fmt>)

function(kw_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINKS" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC kw_warnings ${ARG_LINKS})
  kw_optimise_with_sanitizers(${name})
endfunction()

function(kw_test name)
  cmake_parse_arguments(ARG "" "LABEL" "SOURCES;LINKS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE kw_test_main ${ARG_LINKS})
  kw_optimise_with_sanitizers(${name})
  if(KERNELWRIGHT_SANITIZE)
    if(NOT ARG_LABEL STREQUAL host)
      set_target_properties(${name} PROPERTIES EXCLUDE_FROM_ALL TRUE)  # compilers and GPUs are not what sanitizers look at
    endif()
  else()
    target_compile_options(${name} PRIVATE -O1)  # two thirds of the time of -O2; what runs long is in the libraries
  endif()
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
