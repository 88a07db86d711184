# The options of the build, except those of CUDA (cuda.cmake). Developers' options are on only if this project is the top one.
option(BUILD_SHARED_LIBS "Build the components as shared libraries" OFF)
option(LAMINA_INSTALL "Install the library and its package" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_BUILD_BENCH "Build lamina_bench" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_CUDA_HOST "Build the backend cuda-host: the CUDA kernels run on the host, for tests" ${LAMINA_BUILD_TESTS})
set(lamina_all_components core nets onnx safetensors training tuning communicators)
set(LAMINA_COMPONENTS ${lamina_all_components} CACHE STRING
    "Components of the library; core alone needs no package but Eigen. Tests and lamina_bench need all")
option(LAMINA_MPI "Train with several processes, where MPI is found" ON)
option(LAMINA_CCACHE "Compile through ccache where it is installed" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_GROUPS "Compile small files in groups: quicker from nothing, slower after an edit" ON)
option(LAMINA_WERROR "Treat warnings as errors" OFF)
option(LAMINA_COVERAGE "Count the library's lines as they are run, for gcov (see tests/coverage)" OFF)
# A component that another one needs is built with it. Tests and the program need all of them.
foreach(component IN LISTS LAMINA_COMPONENTS)
  if(NOT component IN_LIST lamina_all_components)
    message(FATAL_ERROR "LAMINA_COMPONENTS has ${component}; there are ${lamina_all_components}")
  endif()
endforeach()
list(APPEND LAMINA_COMPONENTS core)
if("training" IN_LIST LAMINA_COMPONENTS)
  list(APPEND LAMINA_COMPONENTS nets safetensors communicators)
endif()
set(lamina_left_out ${lamina_all_components})
list(REMOVE_ITEM lamina_left_out ${LAMINA_COMPONENTS})
if(lamina_left_out AND (LAMINA_BUILD_TESTS OR LAMINA_BUILD_BENCH))
  message(STATUS "All components are built: tests and lamina_bench need them (LAMINA_BUILD_TESTS, LAMINA_BUILD_BENCH)")
  set(LAMINA_COMPONENTS ${lamina_all_components})
  set(lamina_left_out "")
endif()
list(REMOVE_DUPLICATES LAMINA_COMPONENTS)
set(LAMINA_INSTRUCTION_SETS x86-64-v3 x86-64-v4 CACHE STRING
    "Instruction sets that the ops of eigen are compiled for besides generic: x86-64-v3, x86-64-v4, or native")
option(LAMINA_GENERIC "Compile the ops of eigen for every processor of the target, too; with tests they always are" ON)
set(LAMINA_KERNEL_FLAGS "" CACHE STRING
    "Further flags of cuda-host's kernels, such as optimisation in a build without it")
set(LAMINA_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_UNITY_BUILD ${LAMINA_GROUPS})
if(LAMINA_BUILD_TESTS AND BUILD_SHARED_LIBS)  # tests reach into the library's own files
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fno-semantic-interposition>)
else()
  set(CMAKE_CXX_VISIBILITY_PRESET hidden)
endif()
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

if(LAMINA_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LAMINA_CCACHE_PROGRAM ccache)
  mark_as_advanced(LAMINA_CCACHE_PROGRAM)
  if(LAMINA_CCACHE_PROGRAM)
    # Without the first variable, ccache does not keep files that use precompiled headers. With the others, clones of
    # this project in other folders find the same results.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${LAMINA_CCACHE_PROGRAM})
  endif()
endif()
