#pragma once
// lamina_bench serve CONFIG: a worker of bench/race/race, which runs one pass at a time.

#include <string>

namespace lamina::bench {

/// Serves as server.h says, on what `config` asks for as JSON: {"net", "batch", "threads", "backend", "device", "math",
/// "measure", "graph"}; with "files", a folder, it first writes the network there for peers, with "onnx" as ONNX too
/// (network_files.h). Or {"training", "share", "threads", "backend", "epochs", "files"}: epochs of a workload
/// (training.h). Without "net" and "training" it serves convolutions. What fails is one last line with "error", and
/// "refused" where it is something that cannot be done here and no fault. Returns the exit status.
int run_serve(const std::string& config);

}  // namespace lamina::bench
