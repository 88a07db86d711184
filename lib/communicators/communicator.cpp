// Communicators by name, and the comparison of ranks.

#include "lamina/communicator.h"

#include <algorithm>
#include <cstdlib>

#include "communicators.h"
#include "lamina/error.h"
#include "lib/core/system/usable_threads.h"
#include "lib/core/text/difference.h"
#include "lib/core/text/shortest.h"

namespace lamina {
namespace {

/// A single rank: a sum over all ranks changes nothing.
class Alone final : public Communicator {
 public:
  std::string_view name() const override { return "self"; }
  int rank() const override { return 0; }
  int size() const override { return 1; }
  int threads() const override { return usable_threads(); }
  void start_all_reduce(Device&, void*, std::int64_t, DType dtype) override { communicator::check_sum(dtype); }
  void finish(Device&) override {}
  void sum(std::span<double>) override {}
  void broadcast(void*, std::size_t, int) override {}
  void barrier() override {}
  void abort(int) override {}
};

}  // namespace

void communicator::check_sum(DType dtype) {
  if (dtype != DType::f32 && dtype != DType::f64)
    throw UsageError("a sum over ranks of " + std::string(to_string(dtype)) + "; it should be of f32 or f64");
}

std::vector<std::string> communicator_names() { return {"self", "mpi", "nccl"}; }

std::unique_ptr<Communicator> make_communicator(const std::string& name, const CommunicatorOptions& options) {
  if (!(options.limit_seconds > 0))
    throw UsageError("communicator " + name + ": limit_seconds is " + shortest(options.limit_seconds) +
                     "; it should be above 0");
  if (name == "self") return std::make_unique<Alone>();
  if (name == "nccl") {
    const char* const others = std::getenv("WORLD_SIZE");
    if (!launched_by_mpi() && others != nullptr && std::string(others) != "1")
      throw UsageError("communicator nccl: WORLD_SIZE is " + std::string(others) + "; start the ranks with mpirun");
    return communicator::make_nccl(communicator::open_nccl(options.nccl_folder),
                                   make_communicator(launched_by_mpi() ? "mpi" : "self", options), options);
  }
  if (name != "mpi") throw UsageError("no communicator \"" + name + "\": " + near_names(name, communicator_names()));
#if defined(LAMINA_WITH_MPI)
  return communicator::make_mpi(options);
#else
  throw Unsupported(
      "this build has no communicator mpi; install libopenmpi-dev and openmpi-bin, or MPICH, and configure anew with "
      "-DLAMINA_MPI=ON");
#endif
}

bool launched_by_mpi() {
  for (const char* const variable : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const char* const size = std::getenv(variable); size != nullptr) return std::string(size) != "1";
  return std::getenv("PMIX_RANK") != nullptr;  // PMIx alone does not say how many ranks there are
}

std::string broadcast_text(Communicator& ranks, std::string text, int from_rank) {
  std::uint64_t size = text.size();
  ranks.broadcast(&size, sizeof size, from_rank);
  text.resize(size);
  ranks.broadcast(text.data(), size, from_rank);
  return text;
}

void check_same(Communicator& ranks, const std::string& description) {
  const std::string first = broadcast_text(ranks, description);
  std::vector<double> differs(static_cast<std::size_t>(ranks.size()));
  differs[static_cast<std::size_t>(ranks.rank())] = first != description ? 1 : 0;
  ranks.sum(differs);
  const auto found = std::ranges::find(differs, 1.0);
  if (found == differs.end()) return;
  const int other = static_cast<int>(found - differs.begin());
  const std::string its = broadcast_text(ranks, description, other);
  throw UsageError("the ranks differ: " + difference("rank 0 has", first, "rank " + std::to_string(other), its) +
                   "; start all ranks alike");
}

}  // namespace lamina
