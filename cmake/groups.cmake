# Groups of small files, which compile as one. Most of the time for a small file goes into headers, and into templates
# that its neighbours use as well. Files of a group share their unnamed namespace.
include_guard()

# lamina_sources(<target> <name> <file>...): files of a target, which compile as the group <name> with LAMINA_GROUPS. A
# file that has options of its own compiles alone.
function(lamina_sources target name)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${name})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
