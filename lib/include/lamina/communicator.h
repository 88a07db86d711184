#pragma once
// Ranks: processes, on one machine or several, that train one network together. Each takes its part of every batch.
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
  double limit_seconds = 60;  ///< seconds after which waiting for other ranks throws; ncclCommInitRank has no limit
  std::string nccl_folder{};  ///< folder of libnccl.so.2; empty: where the loader finds it
};

/// Times of one sum, or of a piece of it, in seconds of std::chrono::steady_clock in this process.
struct AllReduceTimes {
  std::int64_t bytes = 0;
  double begin = 0, end = 0;
  double waited = 0;  ///< time at which finish() began to wait for this sum
};

/// A function that waits throws DeviceError if a call of MPI or NCCL failed, or if the other ranks did not come within
/// limit_seconds. The message names what was waited for. After that only abort() and the destructor may be called.
class LAMINA_API Communicator {
 public:
  /// Waits for the other ranks. After an exception or a failed wait, it ends all ranks instead, as abort(1) does,
  /// because they would wait for this rank.
  virtual ~Communicator() = default;
  virtual std::string_view name() const = 0;
  virtual int rank() const = 0;     ///< number of this rank, counted from 0
  virtual int size() const = 0;     ///< number of ranks
  virtual int threads() const = 0;  ///< threads for BackendOptions: the machine's threads, divided among its ranks

  /// Begins to replace each of `count` numbers in the device's memory by its sum over all ranks. The sum follows all
  /// work that was enqueued before. Does not wait for other ranks. The result has the same bits on every rank, and on
  /// every run with this number of ranks. Throws UsageError unless the type is f32 or f64, and Unsupported for memory
  /// that the communicator cannot read.
  virtual void start_all_reduce(Device&, void* data, std::int64_t count, DType) = 0;
  /// Makes all work that is enqueued from now on wait for the sums that were begun. The host may have to wait, too.
  virtual void finish(Device&) = 0;
  /// The sums that the last finish() waited for; empty unless the communicator knows when they ran ("mpi" does). Valid
  /// until the next sum.
  virtual std::span<const AllReduceTimes> last_all_reduces() const { return {}; }

  virtual void sum(std::span<double>) = 0;  ///< sums over all ranks, in place; waits
  virtual void broadcast(void* data, std::size_t bytes, int from_rank = 0) = 0;  ///< waits
  virtual void barrier() = 0;                                                    ///< waits until all ranks call it

  /// Ends the processes of all ranks, this one included, with this exit status. With a single rank it does nothing and
  /// returns.
  virtual void abort(int status = 1) = 0;
};

/// "self": one rank, alone. "mpi": the processes that mpirun started, or one process without mpirun. A process can make
/// one "mpi" only, because MPI cannot be opened again. "nccl": the same processes, each with one Device on a separate
/// GPU. NCCL sums the memory of the GPUs; everything else goes over MPI. Throws UsageError for an unknown name, a
/// second "mpi", a limit that is not above 0, or ranks of a launcher other than MPI's; Unsupported for "mpi" in a build
/// without it (the message says how to get it); LoadError without a usable NCCL.
LAMINA_API std::unique_ptr<Communicator> make_communicator(const std::string& name, const CommunicatorOptions& = {});

/// Every name that make_communicator accepts, built or not.
LAMINA_API std::vector<std::string> communicator_names();

/// Whether MPI's launcher started this process as one of several, judged by the environment variables that it sets.
LAMINA_API bool launched_by_mpi();

/// The text of rank `from_rank`, on every rank. Waits.
LAMINA_API std::string broadcast_text(Communicator&, std::string, int from_rank = 0);

/// Compares a description, a list of parts with ", " between them, with the description on rank 0. If the descriptions
/// differ, every rank throws a UsageError that names the first rank that differs, and the parts that differ.
LAMINA_API void check_same(Communicator&, const std::string& description);

}  // namespace lamina
