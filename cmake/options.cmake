# Every switch of the build. Developers' switches are on only where this project is the top one.
option(LAMINA_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_BUILD_BENCH "Build lamina_bench" ${PROJECT_IS_TOP_LEVEL})
option(LAMINA_WERROR "Treat warnings as errors" OFF)
option(BUILD_SHARED_LIBS "Build lamina as a shared library" OFF)
set(LAMINA_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them: address,undefined or thread")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
