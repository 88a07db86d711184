# Precompiled headers. Half of the time to compile a file goes into the standard library's headers. Precompiling is no
# substitute for an #include: every file still names what it needs (a test gets most of the standard library by
# tests/support/catch.h), and -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without precompiling. Headers of this project
# are not precompiled: ccache takes an edited comment for no change, and g++ no longer recognises the `#pragma once` of
# an edited header.
include_guard()
set(lamina_standard_headers <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <functional> <limits> <map> <memory>
    <mutex> <numeric> <optional> <set> <span> <sstream> <stdexcept> <string> <string_view> <utility> <variant> <vector>)

# lamina_precompile(<target> [<header>...]): compiles the headers of the standard library, and others in <>, once for
# all files of the target. Names in <> let ccache serve build trees in different places.
function(lamina_precompile target)
  target_precompile_headers(${target} PRIVATE ${lamina_standard_headers} ${ARGN})
  lamina_use_precompiled(${target})
endfunction()

# lamina_reuse_precompiled(<target> <other>): uses the precompiled headers of <other>, which has the same flags, except for
# definitions.
function(lamina_reuse_precompiled target other)
  target_precompile_headers(${target} REUSE_FROM ${other})
  lamina_use_precompiled(${target})
endfunction()

function(lamina_use_precompiled target)
  # With this flag, the preprocessed text of a file names its precompiled header, and ccache can hash that text.
  target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
    # These warnings are false on "a" + std::string, GCC bug 105329: a precompiled header does not count as a system
    # header.
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-array-bounds)
  endif()
endfunction()

# Sets `objects` to the objects of a target, without those of its precompiled headers.
function(lamina_objects objects target)
  set(${objects} "$<FILTER:$<TARGET_OBJECTS:${target}>,EXCLUDE,\\.gch$>" PARENT_SCOPE)
endfunction()
