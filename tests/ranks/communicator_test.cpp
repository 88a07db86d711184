// The communicator "mpi": sums, broadcasts, comparisons. Every rank runs every case.

#include "lamina/communicator.h"

#include "tests/ranks/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/queued_device.h"

using namespace lamina::test;

TEST_CASE("several sums at once, in both types, have the right results on every rank") {
  HostDevice device(1);
  const int size = ranks().size();
  std::vector<float> small(1000);
  std::vector<double> large(300000);
  for (std::size_t i = 0; i < small.size(); ++i) small[i] = static_cast<float>(ranks().rank() + static_cast<int>(i));
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = ranks().rank() - static_cast<double>(i);
  ranks().start_all_reduce(device, large.data(), static_cast<std::int64_t>(large.size()), DType::f64);
  ranks().start_all_reduce(device, small.data(), static_cast<std::int64_t>(small.size()), DType::f32);
  ranks().start_all_reduce(device, large.data(), 0, DType::f64);
  ranks().finish(device);
  const double of_ranks = size * (size - 1) / 2.0;
  for (std::size_t i = 0; i < small.size(); ++i) CHECK(small[i] == of_ranks + size * static_cast<double>(i));
  bool right = true;
  for (std::size_t i = 0; i < large.size(); ++i) right &= large[i] == of_ranks - size * static_cast<double>(i);
  CHECK(right);
}

TEST_CASE("a sum has the same bits on every rank and on every run") {
  HostDevice device(1);
  const auto run = [&](const Shape& shape) {
    Values values = normal(shape, static_cast<std::uint64_t>(ranks().rank()));
    ranks().start_all_reduce(device, values.data(), shape.count(), DType::f64);
    ranks().finish(device);
    return values;
  };
  for (const int count : {1, 1001, 500000}) {
    const Values first = run({1, count, 1, 1});
    check_same_bits({first});
    for (int i = 0; i < 5; ++i) CHECK(run({1, count, 1, 1}) == first);
  }
}

TEST_CASE("last_all_reduces() has the times of the sums that the last finish() waited for, and no others") {
  HostDevice device(1);
  std::vector<double> numbers(300000);
  for (const std::int64_t count : {std::int64_t{300000}, std::int64_t{7}}) {
    ranks().start_all_reduce(device, numbers.data(), count, DType::f64);
    std::vector<double> ones(3, 1);
    ranks().sum(ones);
    ranks().finish(device);
    ranks().finish(device);  // there is no sum to wait for, so nothing changes
    std::int64_t bytes = 0;
    for (const AllReduceTimes& each : ranks().last_all_reduces()) {
      bytes += each.bytes;
      CHECK(0 < each.begin);
      CHECK(each.begin <= each.end);
      CHECK(each.end <= each.waited);  // sum() has already waited for this sum
    }
    CHECK(bytes == 8 * count);
  }
  CHECK(make_communicator("self")->last_all_reduces().empty());
}

TEST_CASE("numbers and texts can be broadcast from any rank") {
  for (int from = 0; from < ranks().size(); ++from) {
    int value = ranks().rank();
    ranks().broadcast(&value, sizeof value, from);
    CHECK(value == from);
    const std::string own(static_cast<std::size_t>(3 * ranks().rank()), 'x');
    CHECK(broadcast_text(ranks(), own, from).size() == static_cast<std::size_t>(3 * from));
  }
  std::vector<double> ones(7, 1);
  ranks().sum(ones);
  CHECK(ones == std::vector<double>(7, ranks().size()));
  ranks().barrier();
}

TEST_CASE("if ranks differ, every rank's error says which rank differs, and in what") {
  CHECK_NOTHROW(check_same(ranks(), "seed 1, batch 8"));
  if (ranks().size() == 1) return;
  CHECK_THROWS_WITH(check_same(ranks(), ranks().rank() == 1 ? "seed 2, batch 8" : "seed 1, batch 8"),
                    "the ranks differ: rank 0 has seed 1, and rank 1 seed 2; start all ranks alike");
  CHECK_THROWS_AS(check_same(ranks(), std::string(static_cast<std::size_t>(ranks().rank()), 'x')), UsageError);
}

TEST_CASE("numbers that mpi cannot sum are refused, and so is a second communicator") {
  QueuedDevice gpu;
  double number = 1;
  CHECK_THROWS_WITH(ranks().start_all_reduce(gpu, &number, 1, DType::f64), ContainsSubstring("not of modelled device"));
  HostDevice host(1);
  CHECK_THROWS_AS(ranks().start_all_reduce(host, &number, 1, DType::f16), UsageError);
  CHECK_THROWS_WITH(make_communicator("mpi"), ContainsSubstring("keep the first one"));
  CHECK(ranks().name() == "mpi");
}

TEST_CASE("ranks of one machine share its threads") {
  std::vector<double> threads{static_cast<double>(ranks().threads())};
  CHECK(threads[0] >= 1);
  ranks().sum(threads);
  const double all = make_communicator("self")->threads();
  CHECK(threads[0] <= std::max<double>(all, ranks().size()));
}
