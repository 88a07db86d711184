#pragma once
// The processes that mpirun started, as ranks of one run.

#include <functional>
#include <string>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/communicator.h"

namespace lamina::bench {

/// Runs `work` as a rank, and gives its result. Ranks talk over NCCL if the backend runs on a GPU, else over MPI.
/// Without mpirun there is one rank, and exceptions of `work` pass through. Only rank 0 prints. But if one of several
/// ranks throws, this rank prints the error with its own number, and ends all ranks. Throws what make_communicator
/// throws.
int with_ranks(const std::string& backend, const std::function<int(Communicator&)>& work);

/// Lets only rank 0 print an error that all ranks have: call it before printing. It returns at once in rank 0, which
/// prints the error and ends the other ranks. In other ranks it waits 2 s for this end.
void print_on_rank_0();

/// The images of a batch that each rank gets. Throws UsageError if the batch cannot be divided evenly.
int part_of(int batch, int ranks);

/// The samples of all ranks as one: the time of the slowest rank, and the sum of the processor times. Every rank must
/// call it.
Sample joined(Communicator&, Sample);

/// The all-reduces that the last finish() waited for. All-reduces that overlap in time are joined into one.
std::vector<AllReduceTimes> last_all_reduces(const Communicator&);

}  // namespace lamina::bench
