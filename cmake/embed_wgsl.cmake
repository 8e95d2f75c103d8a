# One WGSL file as C++: HEADER holds its Params struct, SOURCE its text (see RlxKernels.cmake).
file(READ ${INPUT} text)

set(code "${text}")
string(REGEX REPLACE "//[^\n]*" "" code "${code}")
string(REPLACE ";" "," code "${code}")
set(fields)
if(code MATCHES "struct Params {([^}]*)}")
  string(REGEX MATCHALL "[a-z_0-9]+ *: *[a-z0-9<>]+" members "${CMAKE_MATCH_1}")
  foreach(member IN LISTS members)
    string(REGEX MATCH "([a-z_0-9]+) *: *([a-z0-9<>]+)" whole "${member}")
    set(name ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2 STREQUAL "u32")
      string(APPEND fields "  uint32_t ${name} = 0;\n")
    elseif(CMAKE_MATCH_2 STREQUAL "i32")
      string(APPEND fields "  int32_t ${name} = 0;\n")
    elseif(CMAKE_MATCH_2 STREQUAL "f32")
      string(APPEND fields "  float ${name} = 0;\n")
    else()
      message(FATAL_ERROR "${INPUT}: Params field '${name}' is ${CMAKE_MATCH_2}, not u32, i32 or f32.")
    endif()
  endforeach()
endif()
set(params)
if(fields)
  set(params "struct Params {\n${fields}};\n")
endif()

file(WRITE ${HEADER} "// Generated from ${KERNEL}.wgsl.
#pragma once

#include <cstdint>

namespace rlx::webgpu::wgsl::${KERNEL} {

${params}
}  // namespace rlx::webgpu::wgsl::${KERNEL}
")
file(WRITE ${SOURCE} "// Generated from ${KERNEL}.wgsl.
namespace rlx::webgpu::wgsl::${KERNEL} {

extern const char* const kText;
const char* const kText = R\"wgsl(${text})wgsl\";

}  // namespace rlx::webgpu::wgsl::${KERNEL}
")
