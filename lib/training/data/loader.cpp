// Batches prepared ahead by threads. Each thread takes the next batch that no thread has taken, and fills a slot of a
// ring with it.

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <utility>

#include "lamina/data.h"
#include "lamina/error.h"
#include "lamina/random.h"
#include "lib/core/numbers/rounding.h"

namespace lamina {
namespace {

constexpr int most_threads = 256;

struct Slot {
  Batch batch;
  std::exception_ptr error;
  bool ready = false;
};

/// Throws UsageError for options out of range.
LoaderOptions checked(const LoaderOptions& options) {
  const auto wants = [](const char* name, int value, const char* range) {
    throw UsageError("Loader: " + std::string(name) + " is " + std::to_string(value) + "; it should be " + range);
  };
  if (options.batch < 1) wants("batch", options.batch, "at least 1");
  if (options.threads < 0 || options.threads > most_threads) wants("threads", options.threads, "0 to 256");
  if (options.ahead < 1) wants("ahead", options.ahead, "at least 1");
  if (options.ranks < 1) wants("ranks", options.ranks, "at least 1");
  if (options.rank < 0 || options.rank >= options.ranks) wants("rank", options.rank, "from 0 and below ranks");
  if (options.batch % options.ranks != 0)
    throw UsageError("Loader: a batch of " + std::to_string(options.batch) + " is not shared out evenly by " +
                     std::to_string(options.ranks) + " ranks; give a multiple");
  return options;
}

}  // namespace

struct Loader::Work {
  Work(const Source& from, const LoaderOptions& given) : source(from), options(checked(given)), sample(from.shape()) {
    const std::int64_t count = source.count();
    if (count < 1) throw UsageError("Loader: the source has no samples");
    if (sample.n != 1 || sample.c < 1 || sample.h < 1 || sample.w < 1)
      throw UsageError("Loader: a sample's shape is 1 x c x h x w, and not " + to_string(sample));
    samples = options.drop_last ? count - count % options.batch : count;
    if (samples == 0)
      throw UsageError("Loader: " + std::to_string(count) + " samples do not fill a batch of " +
                       std::to_string(options.batch) +
                       ", and drop_last leaves incomplete batches out; give more samples, or a smaller batch");
    batches = divide_up(samples, options.batch);
    slots.resize(options.threads == 0 ? 1 : static_cast<std::size_t>(options.ahead) + 1);
  }

  ~Work() {
    {
      const std::lock_guard lock(mutex);
      over = true;
      cancelled = true;
    }
    work_waits.notify_all();
    for (std::thread& thread : threads) thread.join();
  }

  Slot& slot(std::int64_t number) { return slots[static_cast<std::size_t>(number) % slots.size()]; }

  /// Stops the epoch that is being prepared. Afterwards no thread uses order or slots.
  void stop(std::unique_lock<std::mutex>& lock) {
    cancelled = true;
    running = false;
    caller_waits.wait(lock, [&] { return busy == 0; });
    cancelled = false;
  }

  void fill(Batch& batch, std::int64_t number) {
    const int part = options.batch / options.ranks;
    const std::int64_t first = number * options.batch + std::int64_t{options.rank} * part;
    batch.number = number;
    batch.shape = sample;
    batch.shape.n = static_cast<int>(std::clamp<std::int64_t>(samples - first, 0, part));
    const auto n = static_cast<std::size_t>(batch.shape.n);
    const auto elements = static_cast<std::size_t>(sample.image());
    batch.x.resize(n * elements);
    batch.labels.resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      if (cancelled.load()) return;
      const auto place = static_cast<std::size_t>(first) + i;
      const std::int64_t which = options.shuffle ? order[place] : static_cast<std::int64_t>(place);
      source.write(which, {options.seed, epoch}, std::span(batch.x).subspan(i * elements, elements), batch.labels[i]);
    }
  }

  void prepare(std::int64_t number) {
    Slot& to = slot(number);
    try {
      fill(to.batch, number);
    } catch (...) {
      to.error = std::current_exception();
    }
  }

  void prepare_all() {
    std::unique_lock lock(mutex);
    const auto slot_is_free = [&] {
      return running && unprepared < batches && unprepared < wanted + static_cast<std::int64_t>(slots.size());
    };
    for (;;) {
      work_waits.wait(lock, [&] { return over || slot_is_free(); });
      if (over) return;
      const std::int64_t number = unprepared++;
      ++busy;
      lock.unlock();
      prepare(number);
      lock.lock();
      --busy;
      slot(number).ready = true;
      caller_waits.notify_all();
    }
  }

  const Source& source;
  const LoaderOptions options;
  const Shape sample;
  std::int64_t samples = 0, batches = 0;

  std::mutex mutex;
  std::condition_variable work_waits, caller_waits;
  std::atomic<bool> cancelled = false;
  bool over = false, running = false;
  int busy = 0;                 // number of threads that prepare a batch
  std::int64_t unprepared = 0;  // the first batch that no thread has taken
  std::int64_t wanted = 0;      // the batch that the caller holds, or will ask for first
  std::int64_t next = -1;       // the batch that the caller will ask for; -1: no epoch has begun
  std::uint64_t epoch = 0;
  std::vector<std::uint32_t> order;
  std::vector<Slot> slots;
  std::vector<std::thread> threads;  // last: the other members exist before they start
};

Loader::Loader(const Source& source, LoaderOptions options) : work_(std::make_unique<Work>(source, options)) {
  for (int i = 0; i < work_->options.threads; ++i)
    work_->threads.emplace_back([work = work_.get()] { work->prepare_all(); });
}

Loader::~Loader() = default;

std::int64_t Loader::batches() const { return work_->batches; }
std::int64_t Loader::samples() const { return work_->samples; }

void Loader::start(std::uint64_t epoch, std::int64_t first) {
  Work& work = *work_;
  if (first < 0 || first > work.batches)
    throw UsageError("Loader: an epoch has " + std::to_string(work.batches) + " batches, so none can begin at number " +
                     std::to_string(first));
  std::unique_lock lock(work.mutex);
  work.stop(lock);
  work.next = -1;  // stays -1 if shuffled() throws
  if (work.options.shuffle) work.order = shuffled(work.source.count(), work.options.seed, epoch);
  for (Slot& slot : work.slots) slot.error = nullptr, slot.ready = false;
  work.epoch = epoch;
  work.unprepared = work.wanted = work.next = first;
  work.running = true;
  work.work_waits.notify_all();
}

const Batch* Loader::next() {
  Work& work = *work_;
  if (work.next < 0) throw UsageError("Loader: next() before start()");
  const std::int64_t number = work.next;
  if (number == work.batches) return nullptr;
  Slot& slot = work.slot(number);
  if (work.threads.empty()) {
    if (!slot.error) work.prepare(number);
  } else {
    std::unique_lock lock(work.mutex);
    if (work.wanted < number) {  // gives the previous batch back
      Slot& before = work.slot(number - 1);
      before.ready = false;
      work.wanted = number;
      work.work_waits.notify_one();
    }
    work.caller_waits.wait(lock, [&] { return slot.ready; });
  }
  if (slot.error) std::rethrow_exception(slot.error);
  ++work.next;
  return &slot.batch;
}

std::vector<std::uint32_t> shuffled(std::int64_t count, std::uint64_t seed, std::uint64_t epoch) {
  if (count < 0 || count > std::numeric_limits<std::uint32_t>::max())
    throw UsageError("shuffled: " + std::to_string(count) + " samples; give 0 to 2^32 - 1");
  std::vector<std::uint32_t> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0U);
  static constexpr std::uint64_t stream = hash("shuffle");
  for (std::uint64_t left = order.size(); left > 1; --left) {
    // A uniform position below `left` from 64 random bits: floor(bits left / 2^64), uniform to a part in 2^32.
    const auto words = philox(seed ^ stream, left, epoch);
    const std::uint64_t place = (words[0] * left + (words[1] * left >> 32)) >> 32;
    std::swap(order[left - 1], order[place]);
  }
  return order;
}

}  // namespace lamina
