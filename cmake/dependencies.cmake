# Packages that the build needs. All of them are in Debian 12 and Ubuntu 24.04.
set(lamina_missing "")
set(lamina_missing_apt "")

# Finds a package of at least `version`, or notes that it is missing and which apt package has it.
macro(lamina_need package version apt)
  find_package(${package} QUIET)
  if(NOT ${package}_FOUND)
    list(APPEND lamina_missing "${package} ${version}")
    list(APPEND lamina_missing_apt ${apt})
  elseif(NOT "${version}" STREQUAL "" AND ${package}_VERSION VERSION_LESS "${version}")
    list(APPEND lamina_missing "${package} ${version} (found: ${${package}_VERSION})")
    list(APPEND lamina_missing_apt ${apt})
  endif()
endmacro()

find_package(Threads REQUIRED)
lamina_need(Eigen3 3.4 libeigen3-dev)
if(LAMINA_COMPONENTS MATCHES "safetensors|tuning")
  lamina_need(nlohmann_json 3.10 nlohmann-json3-dev)
endif()
if("training" IN_LIST LAMINA_COMPONENTS)
  lamina_need(ZLIB "" zlib1g-dev)
endif()
if("onnx" IN_LIST LAMINA_COMPONENTS)  # headers alone, without a package file
  find_path(LAMINA_PROTOZERO_INCLUDE_DIR protozero/pbf_reader.hpp)
  mark_as_advanced(LAMINA_PROTOZERO_INCLUDE_DIR)
  if(NOT LAMINA_PROTOZERO_INCLUDE_DIR)
    list(APPEND lamina_missing protozero)
    list(APPEND lamina_missing_apt libprotozero-dev)
  endif()
endif()
if(LAMINA_BUILD_TESTS)
  lamina_need(Catch2 2.13 catch2)
endif()
if(LAMINA_BUILD_BENCH)
  lamina_need(benchmark 1.7 libbenchmark-dev)
  lamina_need(CLI11 2.1 libcli11-dev)
  lamina_need(fmt 9.1 libfmt-dev)
endif()

if(lamina_missing)
  list(JOIN lamina_missing ", " lamina_missing)
  list(JOIN lamina_missing_apt " " lamina_missing_apt)
  message(FATAL_ERROR "Not found: ${lamina_missing}. On Debian and Ubuntu:\n"
                      "  sudo apt-get install ${lamina_missing_apt}\n"
                      "or -DLAMINA_COMPONENTS=core -DLAMINA_BUILD_TESTS=OFF -DLAMINA_BUILD_BENCH=OFF, which needs Eigen alone")
endif()

# MPI, for trainings of several processes, by its interface for C. The sanitizers report memory that MPI keeps.
set(LAMINA_WITH_MPI OFF)
if("communicators" IN_LIST LAMINA_COMPONENTS AND LAMINA_MPI AND LAMINA_SANITIZE STREQUAL "")
  set(MPI_CXX_SKIP_MPICXX ON)
  find_package(MPI QUIET COMPONENTS CXX)
  set(LAMINA_WITH_MPI ${MPI_CXX_FOUND})
endif()

# oneDNN, for the program that times its convolutions beside ours. It is found by its files, because its package file
# stops the configuration where the OpenCL headers are missing. The sanitizers know nothing of its OpenMP.
set(LAMINA_WITH_ONEDNN OFF)
if(LAMINA_BUILD_BENCH AND LAMINA_SANITIZE STREQUAL "")
  find_path(LAMINA_ONEDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
  find_library(LAMINA_ONEDNN_LIBRARY dnnl)
  mark_as_advanced(LAMINA_ONEDNN_INCLUDE_DIR LAMINA_ONEDNN_LIBRARY)
  if(LAMINA_ONEDNN_INCLUDE_DIR AND LAMINA_ONEDNN_LIBRARY)
    set(LAMINA_WITH_ONEDNN ON)
  endif()
endif()
