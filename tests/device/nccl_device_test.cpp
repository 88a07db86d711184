// The installed NCCL with one rank for each GPU of this machine. Ranks are threads of this process.

#include <barrier>
#include <cstdio>
#include <thread>

#include "lamina/lamina.h"
#include "lib/communicators/communicators.h"
#include "lib/core/device/cuda/cuda_device.h"
#include "tests/support/catch.h"
#include "tests/support/skip.h"

namespace lamina {
namespace {

/// The data that the threads share.
struct Meeting {
  explicit Meeting(int count) : size(count), met(count) {}
  int size;
  std::barrier<> met;
  const void* sent = nullptr;
};

/// A rank that is a thread instead of a process.
class Thread final : public Communicator {
 public:
  Thread(Meeting& meeting, int rank) : meeting_(meeting), rank_(rank) {}
  std::string_view name() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return meeting_.size; }
  int threads() const override { return 1; }
  void start_all_reduce(Device&, void*, std::int64_t, DType) override { throw Unsupported("a sum on the host"); }
  void finish(Device&) override {}
  void sum(std::span<double>) override { throw Unsupported("a sum on the host"); }
  void broadcast(void* data, std::size_t bytes, int from_rank) override {
    if (rank_ == from_rank) meeting_.sent = data;
    barrier();
    if (rank_ != from_rank) std::memcpy(data, meeting_.sent, bytes);
    barrier();
  }
  void barrier() override { meeting_.met.arrive_and_wait(); }
  void abort(int status) override { std::_Exit(status); }

 private:
  Meeting& meeting_;
  const int rank_;
};

/// Three times: uploads numbers, starts their sum over the ranks, enqueues more work, and checks the sums.
template <typename T>
void sum_on(Device& device, Communicator& ranks, DType dtype) {
  constexpr std::int64_t count = 1'000'003;  // whole numbers: their sums are exact
  std::vector<T> numbers(count), summed(count);
  Buffer memory(device, count * sizeof(T)), more(device, 1 << 24);
  for (int round = 0; round < 3; ++round) {
    for (std::int64_t i = 0; i < count; ++i)
      numbers[static_cast<std::size_t>(i)] = static_cast<T>(i % 1000 + 7 * ranks.rank() + round);
    device.fill(memory.data(), 0xff, count * sizeof(T));  // NaN until the upload
    device.upload(memory.data(), numbers.data(), count * sizeof(T));
    ranks.start_all_reduce(device, memory.data(), count, dtype);
    device.fill(more.data(), 1, 1 << 24);
    ranks.finish(device);
    device.download(summed.data(), memory.data(), count * sizeof(T));
    const int n = ranks.size();
    std::int64_t wrong = 0;
    for (std::int64_t i = 0; i < count; ++i)
      wrong += summed[static_cast<std::size_t>(i)] != static_cast<T>(n * (i % 1000 + round) + 7 * n * (n - 1) / 2);
    if (wrong > 0) throw Error(std::to_string(wrong) + " sums of " + std::string(to_string(dtype)) + " are wrong");
  }
}

TEST_CASE("the installed NCCL sums numbers over all GPUs of this machine", "[gpu]") {
  if (const std::string why = cuda_unavailable(); !why.empty()) test::skip_without_gpu(why);
  communicator::NcclTable table;
  try {
    table = communicator::open_nccl("");
  } catch (const LoadError& missing) {
    test::skip(missing.what());
  }
  int gpus = 1;
  while (cuda_unavailable(gpus).empty()) ++gpus;
  Meeting meeting(gpus);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < gpus; ++rank)
    threads.emplace_back([&, rank] {
      try {
        CudaDevice device(rank);
        const auto ranks = communicator::make_nccl(table, std::make_unique<Thread>(meeting, rank), {});
        sum_on<float>(device, *ranks, DType::f32);
        sum_on<double>(device, *ranks, DType::f64);
      } catch (const std::exception& error) {
        std::printf("GPU %d of %d: %s\n", rank, gpus, error.what());
        std::fflush(stdout);
        std::_Exit(1);  // the other ranks would wait for this rank
      }
    });
  for (std::thread& thread : threads) thread.join();
  std::printf("NCCL added up the memory of %d GPU(s)\n", gpus);
}

}  // namespace
}  // namespace lamina
