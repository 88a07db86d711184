// The processes that mpirun started, as ranks of one run.

#include "ranks.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <thread>

#include "backends.h"
#include "bench/io/interrupt.h"
#include "lamina/error.h"

namespace lamina::bench {

int with_ranks(const std::string& backend, const std::function<int(Communicator&)>& work) {
  const auto ranks = make_communicator(!launched_by_mpi() ? "self" : runs_on_gpu(backend) ? "nccl" : "mpi");
  if (ranks->rank() != 0) {
    hush_interrupts();
    (void)std::freopen("/dev/null", "w", stdout);
    stderr = std::fopen("/dev/null", "w");
  }
  try {
    return work(*ranks);
  } catch (const std::exception& error) {
    if (ranks->size() == 1) throw;
    const bool misused = dynamic_cast<const UsageError*>(&error) != nullptr;
    if (misused) print_on_rank_0();
    ::dprintf(STDERR_FILENO, "lamina_bench: rank %d of %d: %s\n", ranks->rank(), ranks->size(), error.what());
    ranks->abort(misused ? 2 : 1);
    throw;
  }
}

void print_on_rank_0() {
  for (const char* const variable : {"OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"})
    if (const char* const rank = std::getenv(variable); rank != nullptr && std::string(rank) != "0") {
      std::signal(SIGTERM, SIG_DFL);
      return std::this_thread::sleep_for(std::chrono::seconds(2));
    }
}

int part_of(int batch, int ranks) {
  if (batch % ranks == 0) return batch / ranks;
  throw UsageError(fmt::format("{} ranks cannot share a batch of {} evenly; change one of them", ranks, batch));
}

Sample joined(Communicator& ranks, Sample sample) {
  std::vector<double> seconds(static_cast<std::size_t>(ranks.size()));
  seconds[static_cast<std::size_t>(ranks.rank())] = sample.seconds;
  ranks.sum(seconds);
  ranks.sum({&sample.cpu_seconds, 1});
  sample.seconds = std::ranges::max(seconds);
  return sample;
}

std::vector<AllReduceTimes> last_all_reduces(const Communicator& ranks) {
  std::vector<AllReduceTimes> sums(ranks.last_all_reduces().begin(), ranks.last_all_reduces().end()), together;
  std::ranges::sort(sums, {}, &AllReduceTimes::begin);
  for (const AllReduceTimes& each : sums) {
    if (!together.empty() && each.begin <= together.back().end) {
      together.back().bytes += each.bytes;
      together.back().end = std::max(together.back().end, each.end);
    } else {
      together.push_back(each);
    }
  }
  return together;
}

}  // namespace lamina::bench
