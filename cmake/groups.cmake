# Groups of small files that compile as one. Compiling a small file spends most of its time on headers, and on templates
# that its neighbours use as well. Files of a group share their unnamed namespace.
include_guard()

# lamina_sources(<target> <name> <file>...): adds files to a target. With LAMINA_GROUPS they compile as the group
# <name>. A file with options of its own compiles alone.
function(lamina_sources target name)
  cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${folder}_${name})
  set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
endfunction()
