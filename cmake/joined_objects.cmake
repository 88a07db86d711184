# Joins objects into one that shows a single symbol. Code compiled for one processor must not replace the same inline
# function or template in another object, but a linker keeps the first copy that it meets. In a joined object all copies
# are local, so this cannot happen.
#
# It needs the linker GNU ld, an objcopy (GNU's or LLVM's), objects in ELF, and a generator of one configuration.
include_guard()
include(${CMAKE_CURRENT_LIST_DIR}/precompile.cmake)

# Objects of a link-time optimiser hold no code yet, and objcopy cannot hide unique symbols.
set(lamina_joinable_flags -fno-lto $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)

# Sets `command` to a compiler as CMake itself would call it: for the target, with the root of headers and libraries,
# and with the flags of the build.
function(lamina_compiler_command command)
  set(all ${CMAKE_CXX_COMPILER})
  separate_arguments(more UNIX_COMMAND "${CMAKE_CXX_COMPILER_ARG1}")
  list(APPEND all ${more})
  foreach(kind IN ITEMS TARGET EXTERNAL_TOOLCHAIN)
    if(CMAKE_CXX_COMPILER_${kind} AND CMAKE_CXX_COMPILE_OPTIONS_${kind})
      list(APPEND all ${CMAKE_CXX_COMPILE_OPTIONS_${kind}}${CMAKE_CXX_COMPILER_${kind}})
    endif()
  endforeach()
  if(CMAKE_SYSROOT AND CMAKE_CXX_COMPILE_OPTIONS_SYSROOT)
    list(APPEND all ${CMAKE_CXX_COMPILE_OPTIONS_SYSROOT}${CMAKE_SYSROOT})
  endif()
  string(TOUPPER "${CMAKE_BUILD_TYPE}" config)
  separate_arguments(more UNIX_COMMAND "${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${config}}")
  set(${command} ${all} ${more} PARENT_SCOPE)
endfunction()

# Sets `command` to the command that joins objects into one. Neither an optimiser nor a sanitizer's library takes part,
# whatever the flags say.
function(lamina_join_command command)
  lamina_compiler_command(compiler)
  set(${command} ${compiler} -fno-lto -fno-sanitize=all -fuse-ld=bfd -r -nostdlib -Wl,--force-group-allocation
      PARENT_SCOPE)
endfunction()

# Sets `reason` to why objects cannot be joined here, or to nothing. It asks the tools again if they or their flags have
# changed.
function(lamina_try_joining reason)
  lamina_compiler_command(compiler)
  lamina_join_command(join)
  set(asked "${compiler};${join};${CMAKE_OBJCOPY};${CMAKE_NM};${CMAKE_GENERATOR};${CMAKE_CXX_COMPILER_VERSION}")
  if(NOT DEFINED LAMINA_WHY_NO_JOINING OR NOT asked STREQUAL LAMINA_JOINING_ASKED)
    set(why "")
    set(scratch ${CMAKE_BINARY_DIR}/CMakeFiles/lamina_joining)
    file(WRITE ${scratch}/test.cpp
         "#include <stdexcept>\n#include <vector>\n"
         "inline std::vector<int>& kept() { static std::vector<int> all; return all; }\n"
         "extern \"C\" int shown(int x) try { kept().push_back(x); throw std::runtime_error(\"x\"); }\n"
         "catch (const std::exception&) { return kept().at(0); }\n")
    if(NOT CMAKE_EXECUTABLE_FORMAT STREQUAL "ELF" OR NOT CMAKE_OBJCOPY OR NOT CMAKE_NM)
      set(why "no ELF, objcopy or nm")
    elseif(CMAKE_CONFIGURATION_TYPES)
      set(why "the generator has several configurations")
    else()
      if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
        set(unique -fno-gnu-unique)
      endif()
      file(REMOVE ${scratch}/test.o ${scratch}/all.o ${scratch}/one.o)
      execute_process(COMMAND ${compiler} -fPIC -fno-lto ${unique} -c test.cpp -o test.o
                      WORKING_DIRECTORY ${scratch} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
      if(status EQUAL 0)
        execute_process(COMMAND ${join} -o all.o test.o
                        WORKING_DIRECTORY ${scratch} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
      endif()
      if(status EQUAL 0)
        execute_process(COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=shown all.o one.o
                        WORKING_DIRECTORY ${scratch} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
      endif()
      if(status EQUAL 0)
        execute_process(COMMAND ${CMAKE_NM} --defined-only --extern-only one.o
                        WORKING_DIRECTORY ${scratch} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
      endif()
      if(NOT status EQUAL 0 OR NOT text MATCHES "^[0-9a-f]+ T shown\n$")
        string(REGEX REPLACE "[\r\n].*" "" text "${text}")
        set(why "GNU ld and objcopy do not join a test object: ${text}")
      endif()
    endif()
    set(LAMINA_WHY_NO_JOINING "${why}" CACHE INTERNAL "Why objects cannot be joined; empty: they can")
    set(LAMINA_JOINING_ASKED "${asked}" CACHE INTERNAL "The commands that this was asked of")
  endif()
  set(${reason} "${LAMINA_WHY_NO_JOINING}" PARENT_SCOPE)
endfunction()

# lamina_join_objects(<target> <objects> <symbol>): adds the object library <objects> to <target> as one object that
# shows <symbol>, a mangled name, and nothing else.
function(lamina_join_objects target objects symbol)
  target_compile_options(${objects} PRIVATE ${lamina_joinable_flags})
  lamina_join_command(join)
  set(all ${CMAKE_CURRENT_BINARY_DIR}/${objects}_all.o)
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${objects}.o)
  lamina_objects(parts ${objects})
  add_custom_command(OUTPUT ${joined} BYPRODUCTS ${all} DEPENDS ${parts}
                     COMMAND ${join} -o ${all} ${parts}
                     COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${symbol} ${all} ${joined}
                     COMMAND_EXPAND_LISTS VERBATIM COMMENT "Joining the objects of ${objects}")
  add_custom_target(${objects}_joined DEPENDS ${joined})
  add_dependencies(${objects}_joined ${objects})
  # Ninja knows from the file itself which rule makes it. A dependency of targets would keep everything that links
  # <target> from compiling until the objects are joined.
  if(NOT CMAKE_GENERATOR MATCHES "Ninja")
    add_dependencies(${target} ${objects}_joined)
  endif()
  target_sources(${target} PRIVATE ${joined})
  set_source_files_properties(${joined} TARGET_DIRECTORY ${target} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()
