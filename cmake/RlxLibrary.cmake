# Build helpers: rlx_sources() adds a folder's files to the one library, rlx_test() makes a test program.
include_guard()

if(NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(CCACHE ccache)
  if(CCACHE)
    # Paths relative to the source folder, so that clones and worktrees share objects; the sloppiness is what ccache asks
    # for where there are precompiled headers.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
        CCACHE_ABSSTDERR=1 CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
  endif()
endif()

# Warnings, language level and sanitizers of all our own code.
function(rlx_compile_options target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -Wno-missing-field-initializers)
  if(RLX_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${RLX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
    target_link_options(${target} PUBLIC -fsanitize=${RLX_SANITIZE})
  endif()
  if(RLX_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)  # coverage for libFuzzer, without its main()
  endif()
endfunction()

# rlx_sources(a.cpp b.cpp): this folder's part of the library, sorted.
function(rlx_sources)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  target_sources(rlx PRIVATE ${ARGN})
endfunction()

# Tests spend their time in the library: optimising their own code only doubles the time to compile it.
set(RLX_TEST_FLAGS -O1 -g1)

# rlx_test(NAME name SOURCES a.cpp … [ARGS …] [SHARDS n]): a GoogleTest program that ctest runs; with SHARDS as the tests
# name_1 to name_n, each of which runs a part of it.
function(rlx_test)
  cmake_parse_arguments(ARG "" "NAME;SHARDS" "SOURCES;ARGS" ${ARGN})
  add_executable(${ARG_NAME} ${ARG_SOURCES})
  rlx_compile_options(${ARG_NAME})
  target_include_directories(${ARG_NAME} PRIVATE ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${ARG_NAME} PRIVATE rlx rlx_test_support)
  target_compile_options(${ARG_NAME} PRIVATE ${RLX_TEST_FLAGS})
  target_precompile_headers(${ARG_NAME} REUSE_FROM rlx_test_support)
  if(NOT ARG_SHARDS)
    add_test(NAME ${ARG_NAME} COMMAND ${ARG_NAME} ${ARG_ARGS})
    return()
  endif()
  foreach(i RANGE 1 ${ARG_SHARDS})
    math(EXPR index "${i} - 1")
    add_test(NAME ${ARG_NAME}_${i} COMMAND ${ARG_NAME} ${ARG_ARGS})
    set_tests_properties(${ARG_NAME}_${i} PROPERTIES
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${ARG_SHARDS};GTEST_SHARD_INDEX=${index}")
  endforeach()
endfunction()
