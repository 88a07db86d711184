# The package for users: the install tree, and find_package(lamina) from it and from the build tree.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_targets lamina)
set(package_components "")  # for pkg-config: a component stands before those that it needs
foreach(component IN ITEMS training communicators nets onnx safetensors tuning core)
  if(NOT component IN_LIST LAMINA_COMPONENTS)
    continue()
  endif()
  list(APPEND package_targets lamina_${component})
  string(APPEND package_components "-llamina_${component} ")
  set_target_properties(lamina_${component} PROPERTIES
    EXPORT_NAME ${component}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    INSTALL_RPATH "$ORIGIN"
    DEFINE_SYMBOL "")
endforeach()

# Before 1.0 a minor version may break the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/lamina-config-version.cmake COMPATIBILITY SameMinorVersion)
set(package_folder ${CMAKE_INSTALL_LIBDIR}/cmake/lamina)
set(package_dependencies "")
if("training" IN_LIST LAMINA_COMPONENTS)
  set(package_zlib "-lz ")
  if(NOT BUILD_SHARED_LIBS)
    set(package_dependencies "if(\"training\" IN_LIST lamina_needed)\n  find_dependency(ZLIB)\nendif()\n")
  endif()
endif()
if(LAMINA_WITH_MPI AND NOT BUILD_SHARED_LIBS)
  string(APPEND package_dependencies "if(\"communicators\" IN_LIST lamina_needed)\n  set(MPI_CXX_SKIP_MPICXX ON)\n"
                                     "  find_dependency(MPI COMPONENTS CXX)\nendif()\n")
  list(TRANSFORM MPI_CXX_LIBRARIES APPEND " " OUTPUT_VARIABLE package_mpi_libs)
  list(JOIN package_mpi_libs "" package_mpi_libs)
endif()
if(LAMINA_WITH_CUDA AND NOT BUILD_SHARED_LIBS)
  string(APPEND package_dependencies "find_dependency(CUDAToolkit)\n")
  set(package_cuda_libs "-L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -ldl -lrt ")
endif()
configure_package_config_file(cmake/config.cmake.in ${PROJECT_BINARY_DIR}/lamina-config.cmake
                              INSTALL_DESTINATION ${package_folder})
export(TARGETS ${package_targets} NAMESPACE lamina:: FILE ${PROJECT_BINARY_DIR}/lamina-targets.cmake)

if(LAMINA_INSTALL)
  # The path is relative, so that the installed tree can be moved.
  cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig
             OUTPUT_VARIABLE package_to_prefix)
  if(BUILD_SHARED_LIBS)
    set(package_private_libs "${package_zlib}-pthread")
  else()
    set(package_libs "${package_cuda_libs}${package_mpi_libs}${package_zlib}-pthread")
  endif()
  configure_file(cmake/lamina.pc.in ${PROJECT_BINARY_DIR}/lamina.pc @ONLY)

  install(TARGETS ${package_targets} EXPORT lamina-targets FILE_SET HEADERS)
  install(EXPORT lamina-targets NAMESPACE lamina:: DESTINATION ${package_folder})
  install(FILES ${PROJECT_BINARY_DIR}/lamina-config.cmake ${PROJECT_BINARY_DIR}/lamina-config-version.cmake
          DESTINATION ${package_folder})
  install(FILES ${PROJECT_BINARY_DIR}/lamina.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
  install(FILES LICENSE README.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
endif()
