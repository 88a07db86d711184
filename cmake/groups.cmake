# Groups of small files, which are compiled at once. Most of the time for a small file goes into headers, and into
# templates that its neighbours use as well. Files of a group share their unnamed namespace.
include_guard()

# lamina_group(<list> <name> <file>...): appends one file to the list, which includes the others. By their names in the
# project, so that ccache serves build trees in different places.
function(lamina_group lamina_list name)
  set(text)
  foreach(file IN LISTS ARGN)
    cmake_path(ABSOLUTE_PATH file BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} NORMALIZE)
    cmake_path(RELATIVE_PATH file BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
    string(APPEND text "#include \"${file}\"\n")
  endforeach()
  set(group ${CMAKE_CURRENT_BINARY_DIR}/groups/${name}.cpp)
  file(CONFIGURE OUTPUT ${group} CONTENT "${text}" @ONLY)
  set(${lamina_list} ${${lamina_list}} ${group} PARENT_SCOPE)
endfunction()

# lamina_sources(<target> <name> <file>...): files of a target, one by one or, with LAMINA_GROUPS, as the group <name>.
function(lamina_sources target name)
  set(sources ${ARGN})
  if(LAMINA_GROUPS)
    set(sources)
    lamina_group(sources ${name} ${ARGN})
  endif()
  target_sources(${target} PRIVATE ${sources})
endfunction()
