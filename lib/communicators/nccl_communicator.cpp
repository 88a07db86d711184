// Ranks over NCCL, which is opened at run time: sums run on a queue beside the device's own, in the order in which they
// were begun.

#include "communicators.h"

#include <dlfcn.h>

#include <chrono>
#include <exception>
#include <thread>
#include <utility>

#include "lamina/error.h"
#include "lib/core/system/shared_library.h"
#include "lib/core/text/shortest.h"

namespace lamina::communicator {
namespace {

class Nccl final : public Communicator {
 public:
  Nccl(const NcclTable& table, std::unique_ptr<Communicator> host, double limit_seconds)
      : table_(table), host_(std::move(host)), limit_(limit_seconds) {}

  ~Nccl() override {
    const bool fails = failed_ || std::uncaught_exceptions() > exceptions_;
    close(fails ? table_.ncclCommAbort : table_.ncclCommDestroy);
    if (fails) host_->abort();
  }

  std::string_view name() const override { return "nccl"; }
  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  int threads() const override { return host_->threads(); }
  void sum(std::span<double> numbers) override { host_->sum(numbers); }
  void broadcast(void* data, std::size_t bytes, int from_rank) override { host_->broadcast(data, bytes, from_rank); }
  void barrier() override { host_->barrier(); }

  void abort(int status) override {
    close(table_.ncclCommAbort);
    host_->abort(status);
  }

  void start_all_reduce(Device& device, void* data, std::int64_t count, DType dtype) override {
    check_sum(dtype);
    open(device);
    if (count == 0) return;
    last_ = "a sum of " + std::to_string(count) + " numbers";
    queue_->follow();
    check(table_.ncclAllReduce(data, data, static_cast<std::size_t>(count),
                               dtype == DType::f32 ? nccl_number::float32 : nccl_number::float64, nccl_number::sum,
                               handle_, queue_->stream()),
          "ncclAllReduce");
  }

  /// The host waits, not the device: a device that waits for a hanging rank could not report it.
  void finish(Device& device) override {
    open(device);
    queue_->lead();
    const auto begun = std::chrono::steady_clock::now();
    while (!queue_->idle()) {
      int status = nccl_number::success;
      check(table_.ncclCommGetAsyncError(handle_, &status), "ncclCommGetAsyncError");
      check(status, last_);
      if (std::chrono::steady_clock::now() - begun > std::chrono::duration<double>(limit_))
        fail("waited " + shortest(limit_) + " s for " + last_ + "; another rank may hang");
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    }
  }

 private:
  /// Opens NCCL's communicator of all ranks on the device, and makes the device current in this thread.
  void open(Device& device) {
    if (device_ == &device) return;
    if (device_ != nullptr) throw UsageError("communicator nccl: a rank has only 1 device");
    queue_ = device.side_queue();
    if (queue_ == nullptr)
      throw Unsupported("communicator nccl sums memory of GPUs, and not of " + device.describe() + "; take mpi");
    NcclId id{};
    if (rank() == 0) check(table_.ncclGetUniqueId(&id), "ncclGetUniqueId");
    host_->broadcast(&id, sizeof id, 0);
    check(table_.ncclCommInitRank(&handle_, size(), id, rank()), "ncclCommInitRank");
    device_ = &device;
  }

  void close(int (*how)(NcclTable::Handle)) {
    if (handle_ != nullptr) (void)how(std::exchange(handle_, nullptr));
  }

  void check(int status, const std::string& what) {
    if (status != nccl_number::success)
      fail(what + ": NCCL: " + table_.ncclGetErrorString(status) + " (" + std::to_string(status) + ")");
  }

  [[noreturn]] void fail(const std::string& why) {
    failed_ = true;
    close(table_.ncclCommAbort);  // ends waiting work on the device
    throw DeviceError("communicator nccl: " + why);
  }

  const NcclTable table_;
  const std::unique_ptr<Communicator> host_;
  const double limit_;
  const int exceptions_ = std::uncaught_exceptions();
  Device* device_ = nullptr;
  std::unique_ptr<SideQueue> queue_;
  NcclTable::Handle handle_ = nullptr;
  std::string last_ = "nothing";  // the sum that began last
  bool failed_ = false;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl(const NcclTable& table, std::unique_ptr<Communicator> host,
                                        const CommunicatorOptions& options) {
  return std::make_unique<Nccl>(table, std::move(host), options.limit_seconds);
}

NcclTable open_nccl(const std::string& folder) {
  const std::string path = folder.empty() ? "libnccl.so.2" : folder + "/libnccl.so.2";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    throw LoadError(
        "no NCCL could be opened; install NCCL (Debian and Ubuntu: libnccl2), or give nccl_folder\ntried:\n  " +
        loader_error(path));
  NcclTable table;
  const auto needs = [&](const char* name, auto*& entry) {
    resolve(library, name, entry);
    if (entry == nullptr) throw LoadError(path + " cannot be used as NCCL: it lacks " + name);
  };
  needs("ncclGetUniqueId", table.ncclGetUniqueId);
  needs("ncclCommInitRank", table.ncclCommInitRank);
  needs("ncclCommDestroy", table.ncclCommDestroy);
  needs("ncclCommAbort", table.ncclCommAbort);
  needs("ncclCommGetAsyncError", table.ncclCommGetAsyncError);
  needs("ncclAllReduce", table.ncclAllReduce);
  needs("ncclGetErrorString", table.ncclGetErrorString);
  return table;
}

}  // namespace lamina::communicator
