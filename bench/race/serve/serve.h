#pragma once
// lamina_bench serve: a worker of bench/race/race, which runs one pass at a time.

#include <string>

#include "bench/options/settings.h"
#include "training.h"

namespace lamina::bench {

struct ServeOptions : PlanningSettings {
  std::string network{};             ///< of the zoo; empty: an ONNX file's, or convolutions
  bool write_onnx = false;           ///< the files have the network as ONNX, too
  ServedTrainingOptions training{};  ///< epochs of a workload; its `files` are also those of a network
};

/// Serves as server.h says: passes of a network, epochs of a workload (training.h), or convolutions. With a folder for
/// files it first writes there what peers need (network_files.h, training.h). What fails is one last line with "error",
/// and "refused" where it is something that cannot be done here and no fault. Returns the exit status.
int run_serve(const ServeOptions&);

}  // namespace lamina::bench
