// The communicator "nccl" on fake functions of NCCL, which refuse the same wrong calls as the library, and on a device
// with fake queues.

#include "lib/communicators/communicators.h"
#include "tests/support/catch.h"
#include "tests/support/environment.h"
#include "tests/support/queued_device.h"

using namespace lamina::test;
using communicator::NcclId;
using communicator::NcclTable;

namespace {

using Log = std::vector<std::string>;

/// The fake's received calls, state and answers.
struct Fake {
  Log log;
  int comm = 0, stream = 0;            // their addresses serve as handles
  bool open = false, follows = false;  // open: after init and before the end; follows: the queue waits for the device
  int polls = 0, async = 0;            // polls: queries until the queue is idle; async: asynchronous status
} fake;

constexpr int invalid = 4;

int end(void* handle, const char* how) {
  if (handle != &fake.comm || !std::exchange(fake.open, false)) return invalid;
  fake.log.emplace_back(how);
  return 0;
}

NcclTable table() {
  return {.ncclGetUniqueId =
              [](NcclId* id) {
                fake.log.emplace_back("id");
                std::memset(id->bytes, 'i', sizeof id->bytes);
                return 0;
              },
          .ncclCommInitRank =
              [](void** handle, int ranks, NcclId id, int rank) {
                if (fake.open || std::ranges::count(id.bytes, 'i') != sizeof id.bytes) return invalid;
                fake.open = true;
                *handle = &fake.comm;
                fake.log.push_back("rank " + std::to_string(rank) + " of " + std::to_string(ranks));
                return 0;
              },
          .ncclCommDestroy = [](void* handle) { return end(handle, "destroy"); },
          .ncclCommAbort = [](void* handle) { return end(handle, "abort"); },
          .ncclCommGetAsyncError =
              [](void* handle, int* status) {
                *status = fake.async;
                return handle == &fake.comm && fake.open ? 0 : invalid;
              },
          .ncclAllReduce =
              [](const void* from, void* to, std::size_t count, int dtype, int op, void* handle, void* stream) {
                if (handle != &fake.comm || !fake.open || stream != &fake.stream || from != to || op != 0 ||
                    !std::exchange(fake.follows, false))
                  return invalid;
                fake.log.push_back("sum " + std::to_string(count) + " of type " + std::to_string(dtype));
                return 0;
              },
          .ncclGetErrorString = [](int status) { return status == invalid ? "invalid argument" : "a link is down"; }};
}

struct Gpu : QueuedDevice {
  struct Queue : SideQueue {
    void* stream() override { return &fake.stream; }
    void follow() override { fake.follows = true; }
    void lead() override { fake.log.emplace_back("lead"); }
    bool idle() override { return fake.polls-- <= 0; }
  };
  std::unique_ptr<SideQueue> side_queue() override { return std::make_unique<Queue>(); }
};

/// A communicator that plays the second of two ranks.
struct Second : Communicator {
  std::string_view name() const override { return "second"; }
  int rank() const override { return 1; }
  int size() const override { return 2; }
  int threads() const override { return 1; }
  void start_all_reduce(Device&, void*, std::int64_t, DType) override { throw std::logic_error("a sum on the host"); }
  void finish(Device&) override {}
  void sum(std::span<double> numbers) override { numbers[0] *= 2; }
  void broadcast(void* data, std::size_t bytes, int) override { std::memset(data, 'i', bytes); }
  void barrier() override {}
  void abort(int status) override { fake.log.push_back("all end with " + std::to_string(status)); }
};

std::unique_ptr<Communicator> second(double limit_seconds = 60) {
  fake = {};
  return communicator::make_nccl(table(), std::make_unique<Second>(), {.limit_seconds = limit_seconds});
}

}  // namespace

TEST_CASE("one rank opens NCCL once, sums on a queue after the device's work, and then the device waits for it") {
  fake = {};
  Gpu gpu;
  std::vector<double> numbers(5);
  {
    const auto ranks = communicator::make_nccl(table(), make_communicator("self"), {});
    fake.polls = 3;
    ranks->start_all_reduce(gpu, nullptr, 0, DType::f32);
    ranks->start_all_reduce(gpu, numbers.data(), 5, DType::f64);
    ranks->start_all_reduce(gpu, numbers.data(), 7, DType::f32);
    ranks->finish(gpu);
  }
  CHECK(fake.log == Log{"id", "rank 0 of 1", "sum 5 of type 8", "sum 7 of type 7", "lead", "destroy"});
}

TEST_CASE("another rank gets the first rank's id, and host data is summed by the other communicator") {
  Gpu gpu;
  float number = 1;
  std::vector<double> numbers{3};
  {
    const auto ranks = second();
    ranks->start_all_reduce(gpu, &number, 1, DType::f32);
    ranks->sum(numbers);
    CHECK(ranks->size() == 2);
  }
  CHECK(numbers[0] == 6);
  CHECK(fake.log == Log{"rank 1 of 2", "sum 1 of type 7", "destroy"});
}

TEST_CASE("an asynchronous error, or a rank that hangs, aborts NCCL and ends all ranks") {
  for (const bool hangs : {true, false}) {
    Gpu gpu;
    float number = 1;
    {
      const auto ranks = second(hangs ? 0.01 : 60);
      fake.polls = 1 << 30;
      fake.async = hangs ? 0 : 6;
      ranks->start_all_reduce(gpu, &number, 1, DType::f32);
      CHECK_THROWS_WITH(ranks->finish(gpu), ContainsSubstring(hangs ? "waited 0.01 s for a sum of 1 numbers"
                                                                    : "a sum of 1 numbers: NCCL: a link is down (6)"));
    }
    CHECK(fake.log == Log{"rank 1 of 2", "sum 1 of type 7", "lead", "abort", "all end with 1"});
  }
}

TEST_CASE("a rank that throws, or calls abort(), aborts NCCL before all ranks end") {
  Gpu gpu;
  const auto run = [&](auto&& what) {
    const auto ranks = second();
    ranks->start_all_reduce(gpu, nullptr, 0, DType::f32);
    what(*ranks);
  };
  CHECK_THROWS_AS(run([](Communicator&) { throw std::runtime_error("the disk is full"); }), std::runtime_error);
  CHECK(fake.log == Log{"rank 1 of 2", "abort", "all end with 1"});
  run([](Communicator& ranks) { ranks.abort(3); });
  CHECK(fake.log == Log{"rank 1 of 2", "abort", "all end with 3"});
}

TEST_CASE("numbers that nccl cannot sum are refused, and a failing call is named") {
  Gpu gpu, other;
  QueuedDevice plain;
  double number = 1;
  const auto ranks = second();
  CHECK_THROWS_WITH(ranks->start_all_reduce(plain, &number, 1, DType::f64), ContainsSubstring("take mpi"));
  CHECK_THROWS_AS(ranks->start_all_reduce(gpu, &number, 1, DType::bf16), UsageError);
  ranks->start_all_reduce(gpu, &number, 1, DType::f64);
  CHECK_THROWS_WITH(ranks->start_all_reduce(other, &number, 1, DType::f64), ContainsSubstring("only 1 device"));
  fake.open = false;
  CHECK_THROWS_WITH(ranks->start_all_reduce(gpu, &number, 1, DType::f64),
                    ContainsSubstring("ncclAllReduce: NCCL: invalid argument (4)"));
}

TEST_CASE("without NCCL, and with ranks of another launcher, nccl's error says what to do") {
  CHECK_THROWS_WITH(make_communicator("nccl", {.nccl_folder = "/nowhere"}), ContainsSubstring("/nowhere/libnccl.so.2"));
  const Variable two("WORLD_SIZE", "2");
  if (!launched_by_mpi())
    CHECK_THROWS_WITH(make_communicator("nccl"), ContainsSubstring("start the ranks with mpirun"));
}
