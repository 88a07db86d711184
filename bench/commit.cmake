# Writes commit.h with the commit that is built, and touches it only when that changed. Run at every build:
#   cmake -D source=<folder> -D header=<file> -P commit.cmake
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${source} describe --always --dirty --abbrev=40 --exclude=*
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(commit "${described}")
  endif()
endif()
file(CONFIGURE OUTPUT ${header} @ONLY CONTENT [[
#pragma once
// Written by commit.cmake: the commit that was built, "-dirty" behind it if files differed from it.
namespace lamina::bench::build {
constexpr const char* commit = "@commit@";
}
]])
