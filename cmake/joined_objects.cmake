# Objects joined into one that shows a single symbol. What is compiled for one processor must not stand in for the same
# inline function or template of another object: a linker keeps the first it meets. In a joined object all of them are
# local, so that it cannot.
#
# Takes the linker GNU ld and an objcopy, GNU's or LLVM's, and objects in ELF.
include_guard()

set(lamina_join_command ${CMAKE_CXX_COMPILER} -fuse-ld=bfd -r -nostdlib -Wl,--force-group-allocation)
# Objects of a link-time optimiser are no code yet; unique symbols are beyond objcopy's reach.
set(lamina_joinable_flags -fno-lto $<$<CXX_COMPILER_ID:GNU>:-fno-gnu-unique>)

# Sets `reason` to why objects cannot be joined here, or to nothing.
function(lamina_try_joining reason)
  if(NOT DEFINED LAMINA_WHY_NO_JOINING)
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
      execute_process(COMMAND ${CMAKE_CXX_COMPILER} -fPIC -fno-lto ${unique} -c test.cpp -o test.o
                      WORKING_DIRECTORY ${scratch} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
      if(status EQUAL 0)
        execute_process(COMMAND ${lamina_join_command} -o all.o test.o
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
  endif()
  set(${reason} "${LAMINA_WHY_NO_JOINING}" PARENT_SCOPE)
endfunction()

# lamina_join_objects(<target> <objects> <symbol>): adds the object library <objects> to <target> as one object that
# shows <symbol>, a mangled name, and nothing else.
function(lamina_join_objects target objects symbol)
  target_compile_options(${objects} PRIVATE ${lamina_joinable_flags})
  set(all ${CMAKE_CURRENT_BINARY_DIR}/${objects}_all.o)
  set(joined ${CMAKE_CURRENT_BINARY_DIR}/${objects}.o)
  add_custom_command(OUTPUT ${joined} BYPRODUCTS ${all} DEPENDS $<TARGET_OBJECTS:${objects}>
                     COMMAND ${lamina_join_command} -o ${all} $<TARGET_OBJECTS:${objects}>
                     COMMAND ${CMAKE_OBJCOPY} --keep-global-symbol=${symbol} ${all} ${joined}
                     COMMAND_EXPAND_LISTS VERBATIM COMMENT "Joining the objects of ${objects}")
  add_custom_target(${objects}_joined DEPENDS ${joined})
  add_dependencies(${objects}_joined ${objects})
  add_dependencies(${target} ${objects}_joined)
  target_sources(${target} PRIVATE ${joined})
  set_source_files_properties(${joined} TARGET_DIRECTORY ${target} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
endfunction()
