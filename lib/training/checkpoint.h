#pragma once
// How a training begins, and everything that it needs to resume, as a safetensors file.

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lamina/train.h"

namespace lamina::training {

/// In initial.cpp: fills every parameter by the initialisers of the options, and sets the first step of every dropout.
/// Throws UsageError for an unknown initialiser or parameter.
void fill_parameters(Plan&, const TrainerOptions&);

/// The names of the counters among the state: the steps of every dropout.
std::vector<std::string> counters_of(const Plan&);

/// The state of a run, except for its plan.
struct RunState {
  std::string description;            ///< description of everything that must be the same when the run resumes
  std::uint64_t epoch = 0;            ///< number of the present epoch
  std::int64_t batch = 0;             ///< number of the next batch in the epoch
  double seconds = 0;                 ///< seconds of the present epoch so far
  std::vector<Score> scores;          ///< scores of the epoch's batches
  std::vector<EpochResult> complete;  ///< results of the epochs before
};

/// The description of a run: parts with ", " between them. `samples` is the number in an epoch, `batch` the global
/// batch of all ranks. Calls the schedule with powers of two up to 2^40, and reads up to eight samples.
std::string describe_run(const Plan&, const TrainerOptions&, const Source&, std::int64_t samples, int batch);

/// Writes the file as a whole or not at all. Waits for the device. Throws FileError. Throws Error if a parameter or a
/// running statistic is not finite.
void save_checkpoint(const std::filesystem::path&, const Plan&, const RunState&);

/// Throws FileError for a file that is no checkpoint of this plan, UsageError if its description differs. The plan is
/// unchanged after an error.
RunState load_checkpoint(const std::filesystem::path&, Plan&, const std::string& description);

}  // namespace lamina::training
