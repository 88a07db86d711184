#pragma once
// The processes that mpirun started, as ranks of one run.

#include <functional>
#include <string>
#include <vector>

#include "bench/timing/samples.h"
#include "lamina/communicator.h"

namespace lamina::bench {

/// Does the work as one of the ranks, which has this backend; without mpirun as the only one. Rank 0 alone prints. What
/// is thrown in one of several is printed with its number, and ends all. Gives what the work gives. Throws what
/// make_communicator throws.
int with_ranks(const std::string& backend, const std::function<int(Communicator&)>& work);

/// What is wrong with the words is wrong for every rank: rank 0 says so and ends all while the others wait here.
void print_on_rank_0();

/// One rank's part of a batch. Throws UsageError where it is not whole.
int part_of(int batch, int ranks);

/// The time of the rank that took longest, and the processor's time of all. Every rank calls it.
Sample joined(Communicator&, Sample);

/// Those that the last finish() waited for; sums that overlap are joined.
std::vector<AllReduceTimes> last_all_reduces(const Communicator&);

}  // namespace lamina::bench
