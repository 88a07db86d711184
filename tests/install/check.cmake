# Uses lamina as others do.
# usage: cmake -DKIND=... -DSOURCE=... -DBINARY=... -DSCRATCH=... -DCOMPILER=... -P check.cmake
#
#   KIND=install       the static library, installed and moved to another place: find_package and pkg-config
#   KIND=build_tree    find_package in the build tree
#   KIND=shared        the shared library, built for this, installed and moved: find_package and pkg-config
#   KIND=subdirectory  add_subdirectory
cmake_minimum_required(VERSION 3.25)
set(consumer ${CMAKE_CURRENT_LIST_DIR}/consumer)
set(prefix ${SCRATCH}/prefix)
file(REMOVE_RECURSE ${SCRATCH})
file(MAKE_DIRECTORY ${SCRATCH})

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\nended with ${status}:\n${text}")
  endif()
  set(output "${text}" PARENT_SCOPE)
endfunction()

set(configure ${CMAKE_COMMAND} -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=${COMPILER})

# Configures, builds and runs the consumer. What lamina uses inside must not be asked of it.
function(build_and_run_consumer)
  run(${configure} -S ${consumer} -B ${SCRATCH}/consumer ${ARGN})
  run(${CMAKE_COMMAND} --build ${SCRATCH}/consumer)
  run(${SCRATCH}/consumer/consumer)
endfunction()

# Installs a build tree, moves what came of it, and looks for names that must not leave the house.
function(install_and_move build)
  run(${CMAKE_COMMAND} --install ${build} --prefix ${SCRATCH}/first)
  file(RENAME ${SCRATCH}/first ${prefix})
  file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc ${prefix}/*.h)
  foreach(text IN LISTS texts)
    file(READ ${text} content)
    foreach(word ${SOURCE} ${SCRATCH} Eigen3:: nlohmann lamina_flags)
      string(FIND "${content}" "${word}" at)
      if(NOT at EQUAL -1)
        message(FATAL_ERROR "${text} names ${word}")
      endif()
    endforeach()
  endforeach()
endfunction()

set(without_inner -DCMAKE_DISABLE_FIND_PACKAGE_Eigen3=ON -DCMAKE_DISABLE_FIND_PACKAGE_nlohmann_json=ON)

function(build_and_run_by_pkg_config)
  file(GLOB_RECURSE pc ${prefix}/lamina.pc)
  cmake_path(GET pc PARENT_PATH folder)
  run(${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${folder} pkg-config --cflags --libs lamina)
  separate_arguments(flags UNIX_COMMAND "${output}")
  cmake_path(GET folder PARENT_PATH library_folder)
  run(${COMPILER} -std=c++20 ${consumer}/main.cpp -o ${SCRATCH}/by_pkg_config ${flags} -Wl,-rpath,${library_folder})
  run(${SCRATCH}/by_pkg_config)
endfunction()

if(KIND STREQUAL "install")
  install_and_move(${BINARY})
  build_and_run_consumer(-DCMAKE_PREFIX_PATH=${prefix} ${without_inner})
  build_and_run_by_pkg_config()
  if(EXISTS ${BINARY}/bench/lamina_bench)
    run(${prefix}/bin/lamina_bench networks)
  endif()
elseif(KIND STREQUAL "build_tree")
  build_and_run_consumer(-Dlamina_DIR=${BINARY} ${without_inner})
elseif(KIND STREQUAL "shared")
  run(${configure} -S ${SOURCE} -B ${SCRATCH}/build -DBUILD_SHARED_LIBS=ON -DLAMINA_BUILD_TESTS=OFF
      -DLAMINA_BUILD_BENCH=OFF)
  run(${CMAKE_COMMAND} --build ${SCRATCH}/build)
  install_and_move(${SCRATCH}/build)
  file(REMOVE_RECURSE ${SCRATCH}/build)
  file(GLOB_RECURSE library ${prefix}/liblamina.so)
  run(nm -DC --defined-only ${library})
  if(NOT output MATCHES "lamina::Plan::forward" OR output MATCHES "[ \t](Eigen|nlohmann|lamina::eigen)::")
    message(FATAL_ERROR "${library} exports too little or too much:\n${output}")
  endif()
  build_and_run_consumer(-DCMAKE_PREFIX_PATH=${prefix} ${without_inner})
  build_and_run_by_pkg_config()
elseif(KIND STREQUAL "subdirectory")
  build_and_run_consumer(-DLAMINA_SOURCE=${SOURCE})
  if(EXISTS ${SCRATCH}/consumer/lamina/tests OR EXISTS ${SCRATCH}/consumer/lamina/bench)
    message(FATAL_ERROR "a consumer gets the developers' targets")
  endif()
else()
  message(FATAL_ERROR "KIND=${KIND} is none of those at the head of this file")
endif()
