#pragma once
// cuBLAS, opened at run time. No program links it.

#include <string>

#include "blas.h"

namespace lamina {

struct BlasLibrary {
  BlasTable table;
  std::string path;     ///< path of the file that was opened
  std::string version;  ///< "13.1.0"

  std::string description() const { return "cuBLAS " + version; }
};

/// Opens the cuBLAS of a folder. Without a folder, it takes the library that the process has already loaded, else the
/// one that the loader finds, else that of the toolkit in CUDA_HOME or CUDA_PATH or of the build. `major` is the wanted
/// version, which must fit the build of cuDNN: 11, 12 or 13; 0 takes the newest. An opened library stays open. Needs no
/// device. Throws LoadError with the missing entry points or, from its second line on, every place that was tried.
BlasLibrary open_blas(const std::string& directory = {}, int major = 0);

/// The one cuBLAS of the process, opened by the first call that succeeds. Throws LoadError as open_blas does, and if a
/// later call names another folder.
const BlasLibrary& blas_library(const std::string& directory = {});

}  // namespace lamina
