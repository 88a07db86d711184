#pragma once
// An epoch of one of the six workloads in a race, and the files by which others train on the same batches.

#include <filesystem>
#include <memory>
#include <string>

#include "lamina/backend.h"
#include "server.h"

namespace lamina::bench {

struct ServedTrainingOptions {
  std::string workload{};
  double share = 1;  ///< of the synthetic set
  int epochs = 1;    ///< that `files` gets; a race has one more than rounds
  std::filesystem::path files{};
};

/// Writes to the folder `files`, which exists: initial.safetensors, the parameters that the training starts with, and
/// epoch-0.safetensors, ...: "x" and "labels" of every sample in the order of the epoch, whole batches only.
void write_batches(const ServedTrainingOptions&, Backend&);

/// Each pass is the next epoch of one training, on whole batches and without validation: "epoch" and "epoch_cpu"
/// seconds, "loss", "accuracy".
std::unique_ptr<Served> serve_training(const ServedTrainingOptions&, Backend&);

}  // namespace lamina::bench
