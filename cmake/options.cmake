# Every switch of the build. Developers' switches are on only where this project is the top one.
option(BUILD_SHARED_LIBS "Build lamina as a shared library" OFF)
option(LAMINA_INSTALL "Install the library and its package" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_BUILD_BENCH "Build lamina_bench" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_CUDA_HOST "Build the backend cuda-host: the CUDA kernels run on the host, for tests" ${LAMINA_BUILD_TESTS})
option(LAMINA_MPI "Train with several processes, where MPI is found" ON)
option(LAMINA_CCACHE "Compile through ccache where it is installed" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_GROUPS "Compile small files in groups: quicker from nothing, slower after an edit" ON)
option(LAMINA_WERROR "Treat warnings as errors" OFF)
option(LAMINA_COVERAGE "Count the library's lines as they are run, for gcov (see tests/coverage)" OFF)
set(LAMINA_INSTRUCTION_SETS x86-64-v3 x86-64-v4 CACHE STRING
    "Instruction sets that the ops of eigen are compiled for besides generic: x86-64-v3, x86-64-v4, or native")
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
    # Without the first it does not keep what is compiled with precompiled headers. The others serve clones in all places.
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros
                                    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${LAMINA_CCACHE_PROGRAM})
  endif()
endif()
