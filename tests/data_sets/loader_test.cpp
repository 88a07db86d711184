// The loader: batches do not depend on the number of threads, errors reach the caller, and the end does not wait for
// whole batches.

#include <atomic>
#include <chrono>
#include <thread>

#include "lamina/data.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A source whose sample i has x = {i, epoch} and the label i % 7. Writing a sample can take long, or throw.
struct Counting : Source {
  explicit Counting(std::int64_t samples) : samples_(samples) {}
  std::int64_t count() const override { return samples_; }
  Shape shape() const override { return {1, 1, 2, 1}; }
  int classes() const override { return 7; }
  void write(std::int64_t sample, Moment moment, std::span<float> x, float& label) const override {
    ++written;
    if (sample == broken) throw std::runtime_error("sample is broken");
    if (sleep.count() > 0) std::this_thread::sleep_for(sleep);
    x[0] = static_cast<float>(sample);
    x[1] = static_cast<float>(moment.epoch);
    label = static_cast<float>(sample % 7);
  }

  std::int64_t broken = -1;
  std::chrono::milliseconds sleep{0};
  mutable std::atomic<int> written = 0;

 private:
  std::int64_t samples_;
};

struct Copy {
  std::int64_t number;
  Shape shape;
  std::vector<float> x, labels;
  bool operator==(const Copy&) const = default;
};

/// Copies of the remaining batches of the epoch.
std::vector<Copy> rest(Loader& loader) {
  std::vector<Copy> all;
  while (const Batch* b = loader.next()) all.push_back({b->number, b->shape, b->x, b->labels});
  return all;
}

std::vector<Copy> epoch(Loader& loader, std::uint64_t number, std::int64_t first = 0) {
  loader.start(number, first);
  return rest(loader);
}

/// The first number of every sample, in the order of the batches.
std::vector<std::uint32_t> samples(const std::vector<Copy>& batches) {
  std::vector<std::uint32_t> all;
  for (const Copy& batch : batches)
    for (std::size_t i = 0; i < batch.labels.size(); ++i) all.push_back(static_cast<std::uint32_t>(batch.x[2 * i]));
  return all;
}

}  // namespace

TEST_CASE("batches come in order, and the last one may be short") {
  const Counting source(10);
  Loader loader(source, {.batch = 4, .shuffle = false});
  CHECK(loader.batches() == 3);
  CHECK(loader.samples() == 10);
  const std::vector<Copy> batches = epoch(loader, 9);
  REQUIRE(batches.size() == 3);
  CHECK(batches[0] == Copy{0, {4, 1, 2, 1}, {0, 9, 1, 9, 2, 9, 3, 9}, {0, 1, 2, 3}});
  CHECK(batches[2] == Copy{2, {2, 1, 2, 1}, {8, 9, 9, 9}, {1, 2}});
  CHECK(loader.next() == nullptr);
  CHECK(loader.next() == nullptr);
}

TEST_CASE("the last short batch is left out on request") {
  const Counting source(10), even(8);
  Loader loader(source, {.batch = 4, .shuffle = false, .drop_last = true});
  CHECK(loader.batches() == 2);
  CHECK(loader.samples() == 8);
  CHECK(samples(epoch(loader, 0)) == std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5, 6, 7});
  CHECK(Loader(even, {.batch = 4, .drop_last = true}).batches() == 2);
  CHECK(Loader(even, {.batch = 4}).batches() == 2);
}

TEST_CASE("a shuffled epoch has the order of shuffled(), and each epoch leaves out different samples") {
  const Counting source(10);
  Loader loader(source, {.batch = 4, .drop_last = true, .seed = 6});
  for (const std::uint64_t number : {0, 1, 5}) {
    std::vector<std::uint32_t> order = shuffled(10, 6, number);
    order.resize(8);
    CHECK(samples(epoch(loader, number)) == order);
  }
}

TEST_CASE("the batches are the same for any number of threads and of batches ahead") {
  const Counting source(103);
  Loader plain(source, {.batch = 4, .seed = 2, .threads = 0});
  for (const int threads : {1, 2, 5}) {
    for (const int ahead : {1, 3, 40}) {
      Loader loader(source, {.batch = 4, .seed = 2, .threads = threads, .ahead = ahead});
      for (const std::uint64_t number : {0, 1}) CHECK(epoch(loader, number) == epoch(plain, number));
    }
  }
}

TEST_CASE("an epoch that is resumed at a batch has the same batches from there as the whole epoch") {
  const Counting source(103);
  Loader loader(source, {.batch = 4, .seed = 2, .threads = 2});
  const std::vector<Copy> whole = epoch(loader, 7);
  for (const std::int64_t first : {0, 1, 13, 25, 26}) {
    Loader resumed(source, {.batch = 4, .seed = 2, .threads = 3});
    CHECK(epoch(resumed, 7, first) == std::vector<Copy>(whole.begin() + first, whole.end()));
  }
  CHECK_THROWS_AS(loader.start(0, 27), UsageError);
  CHECK_THROWS_AS(loader.start(0, -1), UsageError);
}

TEST_CASE("another epoch may begin after any batch of an epoch") {
  const Counting source(103);
  Loader plain(source, {.batch = 4, .threads = 0}), loader(source, {.batch = 4, .threads = 3});
  for (int taken = 0; taken < 12; ++taken) {
    loader.start(1);
    for (int i = 0; i < taken; ++i) loader.next();
    CHECK(epoch(loader, 2) == epoch(plain, 2));
  }
}

TEST_CASE("no more batches are prepared than are wanted ahead") {
  const Counting source(1000);
  Loader loader(source, {.batch = 1, .shuffle = false, .threads = 2, .ahead = 3});
  loader.start(0);
  for (int held = 0; held < 5; ++held) {
    const Batch* batch = loader.next();
    const int expected = held + 1 + 3;  // the batches taken so far, and three ahead
    const Clock::time_point start = Clock::now();
    while (source.written < expected && seconds_since(start) < 10) std::this_thread::yield();
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    CHECK(source.written == expected);
    CHECK(batch->x[0] == static_cast<float>(held));  // the caller's batch is unchanged
  }
}

TEST_CASE("batches are prepared while the caller is busy") {
  Counting source(8);
  source.sleep = std::chrono::milliseconds(10);
  Loader loader(source, {.batch = 2, .shuffle = false, .threads = 1, .ahead = 3});
  loader.start(0);
  loader.next();
  const Clock::time_point start = Clock::now();
  while (source.written < 8 && seconds_since(start) < 10) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  CHECK(source.written == 8);
}

TEST_CASE("next() throws the error of a sample at its batch, every time, until the next epoch") {
  Counting source(20);
  source.broken = 9;
  const int threads = GENERATE(0, 1, 3);
  Loader loader(source, {.batch = 4, .shuffle = false, .threads = threads});
  loader.start(0);
  CHECK(loader.next()->number == 0);
  CHECK(loader.next()->number == 1);
  CHECK_THROWS_WITH(loader.next(), "sample is broken");
  CHECK_THROWS_WITH(loader.next(), "sample is broken");
  loader.start(1, 3);
  CHECK(loader.next()->number == 3);
  loader.start(1, 2);
  CHECK_THROWS_AS(loader.next(), std::runtime_error);
  source.broken = -1;
  CHECK(epoch(loader, 2).size() == 5);
}

TEST_CASE("a loader's end waits for samples in progress, not for their batches") {
  Counting source(100000);
  source.sleep = std::chrono::milliseconds(1);
  Clock::time_point start;
  {
    Loader loader(source, {.batch = 50000, .shuffle = false, .threads = 2});  // a batch takes 50 s
    loader.start(0);
    while (source.written < 2) std::this_thread::yield();
    start = Clock::now();
    loader.start(1);
    while (source.written < 4) std::this_thread::yield();
  }
  CHECK(seconds_since(start) < 10);
}

TEST_CASE("a loader without an epoch gives no batch, and ends") {
  const Counting source(4);
  Loader loader(source, {.threads = 2});
  CHECK_THROWS_AS(loader.next(), UsageError);
}

TEST_CASE("later batches use the memory of earlier batches again") {
  const Counting source(1000);
  const int threads = GENERATE(0, 2);
  Loader loader(source, {.batch = 3, .threads = threads, .ahead = 2});
  std::vector<const float*> places;
  for (const std::uint64_t number : {0, 1}) {
    loader.start(number);
    while (const Batch* batch = loader.next()) {
      const float* const at = batch->x.data();
      if (std::ranges::find(places, at) == places.end()) places.push_back(at);
    }
  }
  CHECK(places.size() == (threads == 0 ? 1 : 3));
}

TEST_CASE("loaders refuse options out of range") {
  const Counting source(10), none(0);
  CHECK_THROWS_AS(Loader(source, {.batch = 0}), UsageError);
  CHECK_THROWS_AS(Loader(source, {.threads = -1}), UsageError);
  CHECK_THROWS_AS(Loader(source, {.threads = 1000}), UsageError);
  CHECK_THROWS_AS(Loader(source, {.ahead = 0}), UsageError);
  CHECK_THROWS_AS(Loader(source, {.batch = 11, .drop_last = true}), UsageError);
  CHECK_THROWS_AS(Loader(none, {}), UsageError);
}
