# Writes a source file that holds the commit of the project. The file is touched only if the commit has changed. Every
# build runs this script: cmake -D SOURCE=<project> -D FILE=<source file> -P commit.cmake
set(commit unknown)
find_program(git git)
if(git)
  execute_process(COMMAND ${git} -C ${SOURCE} describe --always --dirty --abbrev=40 --exclude=*
                  OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(commit ${described})
  endif()
endif()
file(CONFIGURE OUTPUT ${FILE} @ONLY CONTENT [[
// Written by commit.cmake.
#include "bench/context/build.h"

const char* const lamina::bench::build::commit = "@commit@";
]])
