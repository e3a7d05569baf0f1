# The few build rules every folder uses, so that a folder's CMakeLists.txt is only a list of names.

# What every target of ours is compiled with; third-party headers are system headers.
add_library(troupe_flags INTERFACE)
target_compile_features(troupe_flags INTERFACE cxx_std_17)
target_include_directories(troupe_flags INTERFACE ${PROJECT_SOURCE_DIR})
target_compile_options(troupe_flags INTERFACE -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wno-missing-field-initializers)
# g++ 13 and 14 see members of a std::variant's other alternatives read where one is moved. 12 sees what there is to see.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
  target_compile_options(troupe_flags INTERFACE -Wno-maybe-uninitialized)
endif()
if(TROUPE_WERROR)
  target_compile_options(troupe_flags INTERFACE -Werror)
endif()
# Clang writes the times of headers into a precompiled one, which differ from clone to clone: ccache would find nothing
# that was compiled with it.
target_compile_options(troupe_flags INTERFACE "$<$<COMPILE_LANG_AND_ID:CXX,Clang>:SHELL:-Xclang -fno-pch-timestamp>")
if(TROUPE_SANITIZE)
  target_compile_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE} -fno-omit-frame-pointer)
  target_link_options(troupe_flags INTERFACE -fsanitize=${TROUPE_SANITIZE})
  if(TROUPE_SANITIZE MATCHES "undefined")
    # null: fires inside CAF's own headers (a null shared_ptr in init_fun_factory.hpp). vptr: needs type information
    # of CAF's classes that the packaged library does not export.
    # Tests themselves, a third of what is compiled, are checked for what they do to memory alone.
    target_compile_options(troupe_flags INTERFACE -fno-sanitize=null,vptr -fno-sanitize-recover=undefined
      $<$<BOOL:$<TARGET_PROPERTY:TROUPE_FOR_TESTS>>:-fno-sanitize=undefined>)
  endif()
endif()

# troupe_precompile(): from here on targets find compiled what nearly every file above runtime/ includes; CAF and
# Cap'n Proto are most of what a compiler reads. Needs the messages' and runtime's targets. Only builds with
# TROUPE_PRECOMPILE do it; dev and fuzz prove that every file includes what it needs.
function(troupe_precompile)
  if(TROUPE_PRECOMPILE)
    file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/generated/precompiled.cpp CONTENT "// Only its headers count.\n")
    set(headers <messages/kinds.hpp> <messages/msg.hpp> <runtime/sup/root.hpp> <runtime/sup/shell.hpp> <runtime/sup/spec.hpp>
      <fmt/format.h> <map> <optional> <set> <string> <variant> <vector>)
    # What was compiled with other flags is of no use to tests.
    foreach(name IN ITEMS troupe_precompiled troupe_precompiled_for_tests)
      add_library(${name} OBJECT EXCLUDE_FROM_ALL ${PROJECT_BINARY_DIR}/generated/precompiled.cpp)
      target_link_libraries(${name} PUBLIC troupe_flags troupe_sup troupe_messages)
      target_precompile_headers(${name} PRIVATE ${headers})
    endforeach()
    target_compile_options(troupe_precompiled_for_tests PRIVATE ${TROUPE_TEST_FLAGS})
    set_target_properties(troupe_precompiled_for_tests PROPERTIES TROUPE_FOR_TESTS ON)
  endif()
endfunction()

function(troupe_use_precompiled name)
  if(TARGET troupe_precompiled)
    target_precompile_headers(${name} REUSE_FROM troupe_precompiled)
  endif()
endfunction()

# troupe_for_tests(name): no program is made of it, so it need not be fast.
function(troupe_for_tests name)
  target_compile_options(${name} PRIVATE ${TROUPE_TEST_FLAGS})
  set_target_properties(${name} PROPERTIES TROUPE_FOR_TESTS ON)
  if(TARGET troupe_precompiled_for_tests AND TROUPE_TEST_FLAGS)
    target_precompile_headers(${name} REUSE_FROM troupe_precompiled_for_tests)
  else()
    troupe_use_precompiled(${name})
  endif()
endfunction()

# troupe_library(name [TESTING] SOURCES a.cpp … DEPS target …): TESTING are those that only tests use.
function(troupe_library name)
  cmake_parse_arguments(arg "TESTING" "" "SOURCES;DEPS" ${ARGN})
  add_library(${name} STATIC ${arg_SOURCES})
  target_link_libraries(${name} PUBLIC troupe_flags ${arg_DEPS})
  if(arg_TESTING)
    troupe_for_tests(${name})
  else()
    troupe_use_precompiled(${name})
  endif()
endfunction()

# troupe_program(name SOURCES … [LINKS name …] DEPS …): a product executable, placed in <build>/bin and installed, with
# links to it of other names. The target `programs` builds them all and nothing else.
add_custom_target(programs)
function(troupe_program name)
  cmake_parse_arguments(arg "" "" "SOURCES;LINKS;DEPS" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_flags ${arg_DEPS})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  foreach(link ${arg_LINKS})
    set(path ${PROJECT_BINARY_DIR}/bin/${link})
    add_custom_command(TARGET ${name} POST_BUILD COMMAND ${CMAKE_COMMAND} -E create_symlink ${name} ${path})
    install(FILES ${path} DESTINATION ${CMAKE_INSTALL_BINDIR})
  endforeach()
  set_property(GLOBAL APPEND PROPERTY TROUPE_PROGRAMS ${name})
  add_dependencies(programs ${name})
  troupe_use_precompiled(${name})
endfunction()

# troupe_test(name SOURCES … DEPS … [LABELS …] [TIMEOUT s]): one doctest executable, one ctest entry.
# Each executable gets doctest's main from tests/doctest_main.cpp, compiled once. Labelled `threads` are those with
# more than one; only they are built (target `threaded_tests`) and run with the thread sanitizer. Labelled `once` are
# those that no sanitizer repeats. Labelled `seeds` are those that play by chance: a sanitized build plays a part of
# their rounds (tests/rounds.hpp), the plain one all of them.
add_custom_target(threaded_tests)
# What tests of the label `once` run: the product's programs, and some of our own.
add_custom_target(once_programs)
add_dependencies(once_programs programs)
function(troupe_test name)
  cmake_parse_arguments(arg "" "TIMEOUT" "SOURCES;DEPS;LABELS" ${ARGN})
  if(NOT TROUPE_TESTS OR ("once" IN_LIST arg_LABELS AND TROUPE_SANITIZE))
    return()
  endif()
  if("seeds" IN_LIST arg_LABELS AND NOT TROUPE_SANITIZE)
    list(APPEND arg_LABELS once)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 180)
  endif()
  if(TROUPE_SANITIZE)
    math(EXPR arg_TIMEOUT "${arg_TIMEOUT} * 5")
  endif()
  set(once)
  if("once" IN_LIST arg_LABELS)
    set(once ONCE)
  endif()
  troupe_test_program(${name} SOURCES ${arg_SOURCES} DEPS troupe_doctest_main ${arg_DEPS} ${once})
  # A test's file may use any names: even where libraries are compiled in batches, it is compiled alone.
  set_target_properties(${name} PROPERTIES UNITY_BUILD OFF)
  add_test(NAME ${name} COMMAND ${name})
  set_tests_properties(${name} PROPERTIES TIMEOUT ${arg_TIMEOUT} LABELS "${arg_LABELS}")
  if("threads" IN_LIST arg_LABELS)
    add_dependencies(threaded_tests ${name})
  endif()
endfunction()

# troupe_test_program(name SOURCES … DEPS … [ONCE]): what tests run besides the product's programs, in <build>/tests. ONCE:
# tests of the label `once` do.
function(troupe_test_program name)
  cmake_parse_arguments(arg "ONCE" "" "SOURCES;DEPS" ${ARGN})
  if(NOT TROUPE_TESTS)
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_flags ${arg_DEPS})
  troupe_for_tests(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(arg_ONCE)
    add_dependencies(once_programs ${name})
  endif()
endfunction()

# troupe_pytest(name FILES … [OPTIONS …] [LANE lane] [TIMEOUT s] [PYTHON program] [LIBRARIES]): one ctest entry of the
# label e2e: pytest on files of this folder, or on all of it. With LIBRARIES, Python finds troupe as it was built, and
# PyTorch computes with one thread: several that share a processor with other tests wait for each other.
# Tests of one lane never run at once. Each lane mostly waits, and what all lanes do fits two processors. Tests marked
# `long` are an entry of their own, of the label `long`.
function(troupe_pytest name)
  cmake_parse_arguments(arg "LIBRARIES" "LANE;TIMEOUT;PYTHON" "FILES;OPTIONS" ${ARGN})
  if(NOT arg_LANE)
    set(arg_LANE frameworks)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  if(NOT arg_PYTHON)
    set(arg_PYTHON ${TROUPE_PYTHON})
  endif()
  list(TRANSFORM arg_FILES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  if(NOT arg_FILES)
    set(arg_FILES ${CMAKE_CURRENT_SOURCE_DIR})
  endif()
  set(pytest ${arg_PYTHON} -m pytest -q -p no:cacheprovider -o "markers=long: takes long" ${arg_OPTIONS} ${arg_FILES})
  set(entries ${name})
  troupe_has_long_tests(has_long ${arg_FILES})
  if(has_long)
    add_test(NAME ${name} COMMAND ${pytest} -m "not long")
    add_test(NAME ${name}_long COMMAND ${pytest} -m long)
    list(APPEND entries ${name}_long)
  else()
    add_test(NAME ${name} COMMAND ${pytest})
  endif()
  set_tests_properties(${entries} PROPERTIES LABELS "e2e;once" TIMEOUT ${arg_TIMEOUT} RESOURCE_LOCK ${arg_LANE})
  if(has_long)
    set_tests_properties(${name}_long PROPERTIES LABELS "e2e;once;long")
  endif()
  if(arg_LIBRARIES)
    set_tests_properties(${entries} PROPERTIES ENVIRONMENT
      "PYTHONPATH=${PROJECT_SOURCE_DIR}/python;TROUPE_LIB_DIR=${PROJECT_BINARY_DIR}/libexec/troupe;TROUPE_BIN_DIR=${PROJECT_BINARY_DIR}/bin;OMP_NUM_THREADS=1")
  endif()
endfunction()

# troupe_has_long_tests(result path …): whether one of these files, or of the Python files of these folders, marks a test `long`.
function(troupe_has_long_tests result)
  set(${result} OFF PARENT_SCOPE)
  foreach(path ${ARGN})
    set(files ${path})
    if(IS_DIRECTORY ${path})
      file(GLOB files CONFIGURE_DEPENDS ${path}/test_*.py)
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${files})
    foreach(file ${files})
      file(STRINGS ${file} marks REGEX "mark\\.long")
      if(marks)
        set(${result} ON PARENT_SCOPE)
      endif()
    endforeach()
  endforeach()
endfunction()

# troupe_fuzz(name SOURCES … DEPS … [RUNS n SECONDS s]): a libFuzzer target when TROUPE_FUZZ is on (clang), else nothing. The target
# `fuzzers` builds them all. Its seed corpus, if any, lies in tests/fuzz/corpus/<name>. As a test it is given its corpus,
# and as many inputs made of it as take no time; looking for new ones is `./x fuzz`.
if(TROUPE_FUZZ)
  add_custom_target(fuzzers)
endif()
function(troupe_fuzz name)
  cmake_parse_arguments(arg "" "RUNS;SECONDS" "SOURCES;DEPS" ${ARGN})
  if(NOT TROUPE_FUZZ)
    return()
  endif()
  if(NOT arg_RUNS)
    set(arg_RUNS 500)
    set(arg_SECONDS 4)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE troupe_flags ${arg_DEPS})
  # libFuzzer gives up where it sees no code reached. What the target calls is seen in the preset `fuzz` only.
  target_compile_options(${name} PRIVATE -fsanitize=fuzzer-no-link)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  add_dependencies(fuzzers ${name})
  set(corpus ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  if(NOT EXISTS ${corpus})
    set(corpus)
  endif()
  set(work ${PROJECT_BINARY_DIR}/fuzz_work/${name}) # not among the programs, of which ./x fuzz runs each
  file(MAKE_DIRECTORY ${work})
  add_test(NAME ${name} COMMAND ${name} -seed=1 -runs=${arg_RUNS} -max_total_time=${arg_SECONDS} -timeout=30 -rss_limit_mb=2048
    -artifact_prefix=${PROJECT_BINARY_DIR}/fuzz_work/finding-${name}- ${work} ${corpus})
  set_tests_properties(${name} PROPERTIES LABELS fuzz TIMEOUT 180)
endfunction()
