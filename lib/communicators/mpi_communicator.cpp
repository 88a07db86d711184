// Ranks over MPI. One thread makes every call of MPI, so MPI_THREAD_FUNNELED is enough. Every job is a collective call
// that does not block. The thread tests the running jobs and sleeps in between, so that it takes no processor from the
// threads that compute.

#include "communicators.h"

#include <mpi.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <functional>
#include <limits>
#include <list>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "lib/core/system/usable_threads.h"
#include "lib/core/text/shortest.h"

namespace lamina::communicator {
namespace {

constexpr auto pause = std::chrono::microseconds(20);
constexpr int most = std::numeric_limits<int>::max();  // most numbers or bytes of one call
constexpr std::int64_t piece = 1 << 18;  // numbers in a piece of a long sum: some pieces are added while others travel

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

int of_one_call(std::size_t count) {
  if (count <= most) return static_cast<int>(count);
  throw UsageError("communicator mpi: " + std::to_string(count) + " numbers or bytes at once; give at most " +
                   std::to_string(most));
}

class Mpi final : public Communicator {
 public:
  explicit Mpi(double limit_seconds) : limit_(limit_seconds), thread_([this] { serve(); }) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return size_ > 0; });
  }

  ~Mpi() override {
    if (failed_ || std::uncaught_exceptions() > exceptions_) Mpi::abort(1);
    if (thread_.joinable()) end(Ending::finalize, 0);
  }

  std::string_view name() const override { return "mpi"; }
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int threads() const override { return threads_; }

  void start_all_reduce(Device& device, void* data, std::int64_t count, DType dtype) override {
    check_sum(dtype);
    if (!device.has_host_memory())
      throw Unsupported("communicator mpi sums memory of the host, and not of " + device.describe() +
                        "; train on the backend eigen");
    device.synchronize();
    if (std::exchange(finished_, false)) sums_.clear();
    for (auto* at = static_cast<std::byte*>(data); count > 0;) {
      const int part = static_cast<int>(std::min(count, piece));
      const std::size_t bytes = static_cast<std::size_t>(part) * size_of(dtype);
      const auto begin = [at, part, dtype](MPI_Request* request) {
        return MPI_Iallreduce(MPI_IN_PLACE, at, part, dtype == DType::f32 ? MPI_FLOAT : MPI_DOUBLE, MPI_SUM,
                              MPI_COMM_WORLD, request);
      };
      start("a sum of " + std::to_string(part) + " numbers", begin, static_cast<std::int64_t>(bytes));
      at += bytes;
      count -= part;
    }
  }

  void finish(Device&) override {
    const double now = seconds();
    wait();
    if (std::exchange(finished_, true)) return;
    for (AllReduceTimes& each : sums_) each.waited = now;
  }

  std::span<const AllReduceTimes> last_all_reduces() const override { return sums_; }

  void sum(std::span<double> numbers) override {
    const int count = of_one_call(numbers.size());
    start("a sum of " + std::to_string(numbers.size()) + " numbers", [numbers, count](MPI_Request* request) {
      return MPI_Iallreduce(MPI_IN_PLACE, numbers.data(), count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD, request);
    });
    wait();
  }

  void broadcast(void* data, std::size_t bytes, int from_rank) override {
    const int count = of_one_call(bytes);
    start(std::to_string(bytes) + " bytes of rank " + std::to_string(from_rank),
          [=](MPI_Request* request) { return MPI_Ibcast(data, count, MPI_BYTE, from_rank, MPI_COMM_WORLD, request); });
    wait();
  }

  void barrier() override {
    start("a barrier", [](MPI_Request* request) { return MPI_Ibarrier(MPI_COMM_WORLD, request); });
    wait();
  }

  void abort(int status) override {
    if (size_ > 1) end(Ending::abort, status);
  }

 private:
  using Begin = std::function<int(MPI_Request*)>;
  struct Job {
    std::string what;
    Begin begin;
    AllReduceTimes times;
    MPI_Request request = MPI_REQUEST_NULL;
    bool begun = false, done = false;
  };
  enum class Ending { none, finalize, abort };

  void start(std::string what, Begin begin, std::int64_t bytes = 0) {
    {
      const std::lock_guard lock(mutex_);
      jobs_.push_back({std::move(what), std::move(begin), {.bytes = bytes}});
    }
    called_.notify_one();
  }

  /// Waits until all jobs are done.
  void wait() {
    std::unique_lock lock(mutex_);
    const auto over = [&] { return jobs_.empty() || !error_.empty(); };
    const bool in_time = changed_.wait_for(lock, std::chrono::duration<double>(limit_), over);
    failed_ = !in_time || !error_.empty();
    if (!in_time) error_ = "waited " + shortest(limit_) + " s for " + jobs_.front().what + "; another rank may hang";
    if (failed_) throw DeviceError("communicator mpi: " + error_);
  }

  void end(Ending how, int status) {
    {
      const std::lock_guard lock(mutex_);
      ending_ = how;
      status_ = status;
    }
    called_.notify_one();
    thread_.join();
  }

  // ---- The functions below run in the thread. ----

  void serve() {
    open();
    for (;;) {
      std::vector<Job*> begun;
      {
        std::unique_lock lock(mutex_);
        called_.wait(lock, [&] { return ending_ != Ending::none || !jobs_.empty(); });
        if (ending_ != Ending::none) break;
        for (Job& job : jobs_) begun.push_back(&job);
      }
      bool any_done = false;
      for (Job* const job : begun) {
        if (!std::exchange(job->begun, true)) {
          job->times.begin = seconds();
          check(job->begin(&job->request), job->what);
        }
        int done = 0;
        check(MPI_Test(&job->request, &done, MPI_STATUS_IGNORE), job->what);
        any_done |= job->done = done != 0;
        job->times.end = seconds();
      }
      if (!any_done) {
        std::this_thread::sleep_for(pause);
        continue;
      }
      const std::lock_guard lock(mutex_);
      for (const Job& job : jobs_)
        if (job.done && job.times.bytes > 0) sums_.push_back(job.times);
      jobs_.remove_if([](const Job& job) { return job.done; });
      changed_.notify_all();
    }
    if (ending_ == Ending::abort) MPI_Abort(MPI_COMM_WORLD, status_);
    MPI_Finalize();
  }

  void open() {
    int provided = 0, size = 0;
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    threads_ = shared_threads();
    const std::lock_guard lock(mutex_);
    size_ = size;
    changed_.notify_all();
  }

  /// The threads of this rank. A launcher may bind each rank to processors of its own, or let all ranks use all
  /// processors.
  static int shared_threads() {
    MPI_Comm machine = MPI_COMM_NULL;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &machine);
    int ranks = 1;
    MPI_Comm_size(machine, &ranks);
    cpu_set_t processors;
    CPU_ZERO(&processors);
    sched_getaffinity(0, sizeof processors, &processors);
    MPI_Allreduce(MPI_IN_PLACE, &processors, sizeof processors, MPI_BYTE, MPI_BOR, machine);
    MPI_Comm_free(&machine);
    return std::clamp(limited_by_quota(CPU_COUNT(&processors)) / ranks, 1, usable_threads());
  }

  void check(int status, const std::string& what) {
    if (status == MPI_SUCCESS) return;
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(status, text, &length);
    const std::lock_guard lock(mutex_);
    error_ = what + ": MPI: " + text;
    changed_.notify_all();
  }

  const double limit_;
  const int exceptions_ = std::uncaught_exceptions();
  int rank_ = 0, size_ = 0, threads_ = 1;
  bool failed_ = false, finished_ = false;

  std::mutex mutex_;
  std::condition_variable called_, changed_;
  std::list<Job> jobs_;
  std::vector<AllReduceTimes> sums_;  // sums that have ended; the first start after a finish() clears them
  std::string error_;
  Ending ending_ = Ending::none;
  int status_ = 0;
  std::thread thread_;  // last: the other members exist before it starts
};

}  // namespace

std::unique_ptr<Communicator> make_mpi(const CommunicatorOptions& options) {
  int before = 0;
  MPI_Initialized(&before);
  if (before != 0)
    throw UsageError(
        "communicator mpi: this process has opened MPI before, which can be done once; keep the first one");
  return std::make_unique<Mpi>(options.limit_seconds);
}

}  // namespace lamina::communicator
