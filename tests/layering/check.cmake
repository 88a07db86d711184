# Reads every #include of the project and fails on what a folder may not know.
# usage: cmake -DROOT=<project> -P check.cmake
#
# docs/design.md, section 11, has the reasons. A rule is a folder and the includes it allows, as regular expressions for
# the text between the quotes or brackets. The first rule whose folder holds a file is the file's rule; a source that no
# rule covers is an error, so that a new folder has to say what it may know.
cmake_minimum_required(VERSION 3.25)

set(standard "[a-z0-9_]+")                        # <vector>: the C++ library has no dot and no slash
set(own "[a-z0-9_]+\\.(h|inc)")                   # "pool.h": a file of the same folder; that it is there is checked
set(public "lamina/[a-z0-9_]+\\.h")
set(support "(\\.\\./)*support/[a-z0-9_]+\\.h")   # lib/support knows nothing but the public headers
set(device "(\\.\\./)+device/[a-z0-9_]+\\.h")
set(lowering "(\\.\\./)+(conv_tail|lowering|measure|unit_memory)\\.h")
set(kernels "(\\.\\./)*kernels/[a-z0-9_]+\\.h")
set(measured_kernels "\\.\\./\\.\\./kernels/(delay|peak)\\.h")  # what a device is timed with
set(cuda "cuda_runtime(_api)?\\.h" "cublas_v2\\.h")
set(json "nlohmann/json\\.hpp")
set(posix "sched\\.h" "unistd\\.h" "fcntl\\.h" "dlfcn\\.h" "link\\.h" "sys/(file|mman|stat|types|wait)\\.h" "spawn\\.h")

set(rules)
function(allow folder)
  string(REPLACE ";" "|" allowed "${ARGN}")
  set(rules ${rules} ${folder} PARENT_SCOPE)
  set(allowed_in_${folder} "^(${standard}|${allowed})$" PARENT_SCOPE)
endfunction()

allow(lib/include ${public})
allow(lib/support ${public} ${support} ${own})
allow(lib/graph ${public} ${support} ${own})
allow(lib/plan ${public} ${support} ${own})
allow(lib/io ${public} ${support} ${own} ${json} ${posix})
allow(lib/device ${public} ${support} ${own} ${measured_kernels} ${cuda} ${posix})
# The rooms of eigen, each knowing those above it.
set(eigen ${public} ${own} Eigen/.*)
set(room "\\.\\./micro_kernels/[a-z0-9_]+\\.h")
allow(lib/backends/eigen/micro_kernels ${own})
allow(lib/backends/eigen/runtime ${eigen} ${room} ${lowering} ${support} ${device} immintrin\\.h cpuid\\.h ${posix})
list(APPEND room "\\.\\./runtime/[a-z0-9_]+\\.h")
allow(lib/backends/eigen/gemm ${eigen} ${room})
list(APPEND room "\\.\\./gemm/[a-z0-9_]+\\.h")
allow(lib/backends/eigen/winograd ${eigen} ${room})
list(APPEND room "\\.\\./winograd/[a-z0-9_]+\\.h")
allow(lib/backends/eigen/conv ${eigen} ${room} ${lowering})
list(APPEND room "\\.\\./conv/[a-z0-9_]+\\.h")
allow(lib/backends/eigen/ops ${eigen} ${room} ${lowering} ${device})
allow(lib/backends/eigen ${eigen} ${lowering} ${support} ${device} "(conv|gemm|micro_kernels|ops|runtime|winograd)/[a-z0-9_]+\\.h")
allow(lib/backends/cuda ${public} ${lowering} ${support} ${device} ${kernels} "(\\.\\./)+kernels/host/device_memory\\.h" ${own})
allow(lib/backends/cudnn ${public} ${lowering} ${support} ${device} ${kernels} ${own} cudnn\\.h ${posix})
allow(lib/backends ${public} ${support} ${own} eigen/backend\\.h cuda/backend\\.h cudnn/backend\\.h)
allow(kernels/host ${own} "\\.\\./[a-z0-9_]+\\.h" ucontext\\.h setjmp\\.h "sanitizer/[a-z_]+\\.h" ${posix})
allow(kernels ${own} host/cuda_on_host\\.h ${cuda})
allow(nets "lamina/(api|error|graph|nets|op|shape)\\.h" ${support} ${own})
allow(bench/race/peers ${public} ${own} ${json} oneapi/dnnl/dnnl\\.hpp)
allow(bench ${public} ${support} ${own} ${json} benchmark/.* CLI/.* fmt/.* ${posix})
allow(tests .*)

set(errors 0)
file(GLOB_RECURSE sources RELATIVE ${ROOT} ${ROOT}/lib/*.h ${ROOT}/lib/*.inc ${ROOT}/lib/*.cpp ${ROOT}/kernels/*.h ${ROOT}/kernels/*.cu
     ${ROOT}/kernels/*.cpp ${ROOT}/nets/*.h ${ROOT}/nets/*.cpp ${ROOT}/bench/*.h ${ROOT}/bench/*.cpp)
foreach(source IN LISTS sources)
  set(rule)
  foreach(folder IN LISTS rules)
    string(FIND ${source} ${folder}/ at)
    if(at EQUAL 0)
      set(rule ${folder})
      break()
    endif()
  endforeach()
  if(NOT rule)
    message(SEND_ERROR "${source}: no rule covers its folder; add one to tests/layering/check.cmake")
    math(EXPR errors "${errors} + 1")
    continue()
  endif()

  cmake_path(GET source PARENT_PATH folder)
  file(STRINGS ${ROOT}/${source} includes REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS includes)
    if(NOT line MATCHES "include[ \t]*([<\"])([^>\"]+)[>\"]")
      continue()  # the name is a macro
    endif()
    set(quoted ${CMAKE_MATCH_1})
    set(name ${CMAKE_MATCH_2})
    if(NOT name MATCHES "${allowed_in_${rule}}")
      message(SEND_ERROR "${source}: ${rule}/ may not include ${name}")
      math(EXPR errors "${errors} + 1")
    elseif(quoted STREQUAL "\"" AND name MATCHES "^${own}$" AND NOT EXISTS ${ROOT}/${folder}/${name}
           AND NOT name MATCHES "^(cudnn|cublas_v2|cuda_runtime|cuda_runtime_api)\\.h$")
      message(SEND_ERROR "${source}: ${name} is not a file of its folder")
      math(EXPR errors "${errors} + 1")
    endif()
  endforeach()
endforeach()

list(LENGTH sources count)
if(count EQUAL 0)
  message(FATAL_ERROR "no sources below ${ROOT}")
endif()
message(STATUS "${count} files read, ${errors} violations")
