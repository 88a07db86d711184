# CUDA. LAMINA_CUDA is AUTO, ON or OFF, and LAMINA_WITH_CUDA says whether it is used.
#
# AUTO needs an NVIDIA device, or CMAKE_CUDA_ARCHITECTURES to compile for. It also needs an nvcc of CUDA 12 or later, on
# the path or in CUDA_HOME, that compiles and links a small kernel with this build's host compiler. Else CUDA is left
# out, and one line says why. ON needs no device, and fails without such an nvcc.
set(LAMINA_CUDA AUTO CACHE STRING "The backend cuda: AUTO (where there are a device and CUDA 12 or later), ON or OFF")
set_property(CACHE LAMINA_CUDA PROPERTY STRINGS AUTO ON OFF)

# Sets `nvcc` to the compiler, and `reason` to why there is no CUDA to build with, or to nothing.
function(lamina_try_cuda nvcc reason)
  find_program(LAMINA_NVCC nvcc HINTS ENV CUDACXX ENV CUDA_HOME ENV CUDA_PATH PATH_SUFFIXES bin)
  mark_as_advanced(LAMINA_NVCC)
  set(compiler ${LAMINA_NVCC})
  if(DEFINED ENV{CUDACXX})
    set(compiler $ENV{CUDACXX})
  endif()
  if(CMAKE_CUDA_COMPILER)
    set(compiler ${CMAKE_CUDA_COMPILER})
  endif()
  set(${nvcc} "${compiler}" PARENT_SCOPE)
  if(NOT compiler)
    set(${reason} "no nvcc on the path or in CUDA_HOME" PARENT_SCOPE)
    return()
  endif()

  set(tried "${compiler};${CMAKE_CUDA_HOST_COMPILER}")
  if(NOT "${LAMINA_CUDA_TRIED}" STREQUAL "${tried}")
    set(why "")
    execute_process(COMMAND ${compiler} --version OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
    if(NOT status EQUAL 0 OR NOT text MATCHES "release ([0-9]+\\.[0-9]+)")
      set(why "${compiler} does not print its version")
    elseif(CMAKE_MATCH_1 VERSION_LESS 12)
      set(why "${compiler} is CUDA ${CMAKE_MATCH_1}, and 12 or later is needed")
    else()
      set(scratch ${CMAKE_BINARY_DIR}/CMakeFiles/lamina_cuda)
      file(WRITE ${scratch}/test.cu "#include <cuda_runtime.h>\n#include <type_traits>\n"
           "template <class T> __global__ void twice(T* x) { if constexpr (std::is_same_v<T, float>) *x += *x; }\n"
           "int main() { twice<<<1, 1>>>(static_cast<float*>(nullptr)); return cudaGetLastError(); }\n")
      execute_process(COMMAND ${compiler} -std=c++17 -cudart static -ccbin ${CMAKE_CUDA_HOST_COMPILER}
                              -o ${scratch}/test ${scratch}/test.cu
                      OUTPUT_VARIABLE text ERROR_VARIABLE text RESULT_VARIABLE status)
      if(NOT status EQUAL 0)
        string(REGEX REPLACE "[\r\n].*" "" text "${text}")
        set(why "${compiler} with ${CMAKE_CUDA_HOST_COMPILER} does not build a test kernel: ${text}")
      endif()
    endif()
    set(LAMINA_CUDA_TRIED "${tried}" CACHE INTERNAL "Compilers for which LAMINA_CUDA_WHY holds")
    set(LAMINA_CUDA_WHY "${why}" CACHE INTERNAL "Why they cannot build CUDA code; empty: they can")
  endif()
  set(${reason} "${LAMINA_CUDA_WHY}" PARENT_SCOPE)
endfunction()

set(LAMINA_WITH_CUDA OFF)
if(NOT LAMINA_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "LAMINA_CUDA is ${LAMINA_CUDA}; it is one of AUTO, ON and OFF.")
elseif(NOT LAMINA_CUDA STREQUAL "OFF")
  # All CUDA files have this build's host compiler: nvcc's default may be another one.
  if(NOT CMAKE_CUDA_HOST_COMPILER)
    set(CMAKE_CUDA_HOST_COMPILER ${CMAKE_CXX_COMPILER})
    if(DEFINED ENV{CUDAHOSTCXX})
      set(CMAKE_CUDA_HOST_COMPILER $ENV{CUDAHOSTCXX})
    endif()
  endif()
  set(lamina_architectures "${CMAKE_CUDA_ARCHITECTURES}$ENV{CUDAARCHS}")
  if(LAMINA_CUDA STREQUAL "AUTO" AND lamina_architectures STREQUAL ""
     AND NOT EXISTS /dev/nvidiactl AND NOT EXISTS /proc/driver/nvidia/version)
    set(lamina_why_no_cuda "no NVIDIA device, and no CMAKE_CUDA_ARCHITECTURES to compile for")
  else()
    lamina_try_cuda(lamina_nvcc lamina_why_no_cuda)
  endif()
  if(lamina_why_no_cuda STREQUAL "")
    set(LAMINA_WITH_CUDA ON)
  elseif(LAMINA_CUDA STREQUAL "ON")
    message(FATAL_ERROR "LAMINA_CUDA is ON, but ${lamina_why_no_cuda}.")
  else()
    message(STATUS "Without CUDA: ${lamina_why_no_cuda}. The backend cuda is left out.")
  endif()
endif()

if(LAMINA_WITH_CUDA)
  if(NOT CMAKE_CUDA_COMPILER)
    set(CMAKE_CUDA_COMPILER ${lamina_nvcc})
  endif()
  if(NOT CMAKE_CUDA_ARCHITECTURES AND DEFINED ENV{CUDAARCHS})
    set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS} CACHE STRING "Architectures that the kernels are compiled for")
  endif()
  set(lamina_architectures_given ${CMAKE_CUDA_ARCHITECTURES})
  if(NOT lamina_architectures_given)
    set(CMAKE_CUDA_ARCHITECTURES 75-real 80-real 90)  # 90: its code, and PTX for later ones
  endif()
  enable_language(CUDA)
  if(NOT lamina_architectures_given AND CMAKE_CUDA_ARCHITECTURES_NATIVE)
    set(CMAKE_CUDA_ARCHITECTURES ${CMAKE_CUDA_ARCHITECTURES_NATIVE})
  endif()
  if(LAMINA_CCACHE_PROGRAM AND NOT DEFINED CMAKE_CUDA_COMPILER_LAUNCHER)
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${LAMINA_CCACHE_PROGRAM})
  endif()
  set(CMAKE_CUDA_EXTENSIONS OFF)
  set(CMAKE_CUDA_VISIBILITY_PRESET ${CMAKE_CXX_VISIBILITY_PRESET})
  set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
  find_package(CUDAToolkit REQUIRED)
  message(STATUS "With CUDA ${CUDAToolkit_VERSION} for the architectures ${CMAKE_CUDA_ARCHITECTURES}")
endif()

# lamina_cuda_kernels(<target> <source>...): an object library of .cu files for the device. The build leaves
# <target>.txt in the build tree's root: registers, shared memory and spills of each kernel and architecture.
function(lamina_cuda_kernels target)
  add_library(${target} OBJECT ${ARGN})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  set(launcher ${PROJECT_SOURCE_DIR}/cmake/ptxas_notes ${CMAKE_CUDA_COMPILER_LAUNCHER})
  set_target_properties(${target} PROPERTIES CUDA_STANDARD 17 CUDA_STANDARD_REQUIRED ON
                                             CUDA_COMPILER_LAUNCHER "${launcher}" UNITY_BUILD OFF)
  target_compile_options(${target} PRIVATE --expt-relaxed-constexpr -lineinfo -Xptxas=-v -Xfatbin=-compress-all
                                           -Xcompiler=-Wall,-Wextra,-Wshadow)
  if(LAMINA_WERROR)
    target_compile_options(${target} PRIVATE -Werror=all-warnings -Xcompiler=-Werror)
  endif()

  set(table ${PROJECT_BINARY_DIR}/${target}.txt)
  add_custom_command(OUTPUT ${table} DEPENDS $<TARGET_OBJECTS:${target}> ${PROJECT_SOURCE_DIR}/cmake/kernel_table
                     COMMAND ${PROJECT_SOURCE_DIR}/cmake/kernel_table ${table} $<TARGET_OBJECTS:${target}>
                     COMMAND_EXPAND_LISTS VERBATIM COMMENT "What each kernel takes of the device: ${table}")
  add_custom_target(${target}_table ALL DEPENDS ${table})
endfunction()
