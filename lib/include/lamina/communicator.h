#pragma once
// Ranks: processes on one machine or many that train one network together, each on its part of every batch.
//
//     const auto ranks = make_communicator("mpi");  // started as: mpirun -n 4 program
//     Trainer trainer(graph, *backend, *train, {.communicator = ranks.get()});
//
// Every rank calls the same members in the same order, from one thread.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/device.h"
#include "lamina/shape.h"

namespace lamina {

struct CommunicatorOptions {
  double limit_seconds = 60;  ///< who waits longer for other ranks throws; ncclCommInitRank has no limit
  std::string nccl_folder{};  ///< folder of libnccl.so.2; empty: where the loader finds it
};

/// One sum, or a piece of it. Seconds are of a clock of this process, std::chrono::steady_clock.
struct SumTimes {
  std::int64_t bytes = 0;
  double begin = 0, end = 0;
  double waited = 0;  ///< when finish() was called, which waited for it
};

/// What waits throws DeviceError if a call of MPI or NCCL failed, or if the other ranks did not come within
/// limit_seconds; the message names what was waited for. Then only abort() and the destructor are left to call.
class LAMINA_API Communicator {
 public:
  /// Waits for the other ranks. Where an exception or a failed wait leads here, it ends all ranks, as abort(1) does:
  /// they would wait for this one.
  virtual ~Communicator() = default;
  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;     ///< from 0
  virtual int size() const = 0;     ///< how many ranks there are
  virtual int threads() const = 0;  ///< for BackendOptions: those of this machine, shared out among its ranks

  /// Begins to replace each of `count` numbers of the device's memory by its sum over all ranks, after what was
  /// enqueued. Does not wait for other ranks. The same bits on every rank, and on every run with this number of ranks.
  /// f32 or f64, else a UsageError. Unsupported: memory that is not the host's.
  virtual void start_sum(Device&, void* data, std::int64_t count, DType) = 0;
  /// What is enqueued from now on comes after all sums that were begun. The host may have to wait for it.
  virtual void finish(Device&) = 0;
  /// The sums that the last finish() waited for, where it is known when they ran: by "mpi". Valid until the next sum.
  virtual std::span<const SumTimes> last_sums() const { return {}; }

  virtual void sum(std::span<double>) = 0;                                       ///< over all ranks, in place; waits
  virtual void broadcast(void* data, std::size_t bytes, int from_rank = 0) = 0;  ///< waits
  virtual void barrier() = 0;                                                    ///< waits until all ranks are here

  /// Ends the processes of all ranks, this one too, with this exit status. With one rank it does nothing and returns.
  virtual void abort(int status = 1) = 0;
};

/// "self": one rank, which is alone. "mpi": the processes that mpirun started, or one without it; one at a time, and
/// MPI allows no second one after it. "nccl": the same processes, each with one Device on a GPU of its own, whose
/// memory NCCL sums; all else goes over MPI. Throws UsageError for an unknown name, a second "mpi", a limit that is not
/// above 0, or ranks of a launcher other than MPI's; Unsupported for "mpi" in a build without it, with how to get it;
/// LoadError without an NCCL that can be used.
LAMINA_API std::unique_ptr<Communicator> make_communicator(const std::string& name, const CommunicatorOptions& = {});

/// Every name that make_communicator accepts, built or not.
LAMINA_API std::vector<std::string> communicator_names();

/// Whether this is one of several processes that a launcher of MPI started, by the variables that it sets.
LAMINA_API bool launched_by_mpi();

/// The text of rank `from_rank`, on every rank. Waits.
LAMINA_API std::string broadcast_text(Communicator&, std::string, int from_rank = 0);

/// Compares a description, parts with ", " between them, with that of rank 0. If one differs, every rank throws a
/// UsageError that names the first such rank and the parts.
LAMINA_API void check_same(Communicator&, const std::string& description);

}  // namespace lamina
