#pragma once
// The processes that mpirun started, as ranks of one run.

#include <functional>
#include <string>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/communicator.h"

namespace lamina::bench {

/// Does the work as a rank: over NCCL if the backend runs on a GPU, else over MPI; one rank without mpirun. Only rank 0
/// prints. But any of several prints an exception with its number, and ends all; with a UsageError, rank 0 comes first.
/// Gives the result of the work. Throws what make_communicator throws and, with one rank, what the work throws.
int with_ranks(const std::string& backend, const std::function<int(Communicator&)>& work);

/// Call it before printing an error that all ranks have. Rank 0 goes on. The others wait 2 s for rank 0 to end them.
void print_on_rank_0();

/// A rank's part of a batch. Throws UsageError if the batch cannot be divided evenly.
int part_of(int batch, int ranks);

/// The time of the slowest rank, and the processor time of all ranks. Every rank calls it.
Sample joined(Communicator&, Sample);

/// The sums that the last finish() waited for. Sums that overlap are joined.
std::vector<AllReduceTimes> last_all_reduces(const Communicator&);

}  // namespace lamina::bench
