# Precompiled headers: half of what compiling a file takes is reading the standard library's. They are no substitute for
# an #include: every file still names what it needs (a test, most of the standard library by tests/support/catch.h), and
# -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without them. Headers of this project are not among them: ccache takes an
# edited comment for no change, and g++ no longer finds the `#pragma once` of what was edited.
include_guard()
set(lamina_standard_headers <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
    <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string> <string_view> <utility> <variant> <vector>)

# lamina_precompile(<target> [<header>...]): the standard library's headers, and others in <>, are compiled once for all
# files of the target. By names in <>, so that ccache serves build trees in different places.
function(lamina_precompile target)
  target_precompile_headers(${target} PRIVATE ${lamina_standard_headers} ${ARGN})
  lamina_cache_precompiled(${target})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # False on "a" + std::string, GCC bug 105329: a precompiled header counts as no system header.
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endfunction()

# Sets `objects` to what is compiled of a target, without its precompiled headers.
function(lamina_objects objects target)
  set(${objects} "$<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,\\.gch$>" PARENT_SCOPE)
endfunction()

# ccache knows what a file precompiled only by the text that the preprocessor would have made of it.
function(lamina_cache_precompiled target)
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
endfunction()
