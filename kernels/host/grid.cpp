// Runs a grid of blocks on the host.

#include "grid.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "device_memory.h"
#include "fiber.h"
#include "shape.h"
#include "turns.h"

namespace lamina::cuda_host::host {
namespace {

constexpr unsigned warp_lanes = 32;
constexpr std::size_t guard_bytes = 64;  // bytes after dynamic shared memory that must stay unchanged
constexpr unsigned char guard_byte = 0xa5;

/// Thrown in the threads of a failed launch. It unwinds their frames, so that what they own is freed.
struct Abandoned {};

enum class State { fresh, ready, at_barrier, at_warp, done };

struct Worker;

struct Thread {
  uint3 index{};
  State state = State::fresh;
  Worker* worker = nullptr;
  const char* file = "";  // file of a barrier
  int line = 0, value = 0;
  WarpPrimitive primitive = WarpPrimitive::sync;  // primitive at which a lane waits
  unsigned mask = 0;
  std::uint64_t bits = 0;
  int operand = 0, width = 32;
};

class Machine;

/// A fiber that runs threads, one after another. A thread that waits keeps its worker.
struct Worker {
  Machine* machine = nullptr;
  std::unique_ptr<Fiber> fiber{};
  Thread* thread = nullptr;  ///< null: idle
};

/// Runs one grid at a time.
class Machine {
 public:
  void run(const Launch&, void (*thread)(void*), void* context);
  int sync_block(const char* file, int line, int value);
  std::uint64_t meet_warp(WarpPrimitive, unsigned mask, std::uint64_t bits, int operand, int width);
  unsigned char* dynamic_shared() { return shared_.data(); }

  std::mutex mutex;  ///< guards everything here
  std::optional<Turns> turns;
  std::map<std::string, std::uint64_t> launches;
  std::set<const void*> instances;

 private:
  static void work(void* worker);
  void run_threads(Worker&);
  void run_block();
  void resume(Worker&);
  void wait(State);
  void release_block();
  bool complete(unsigned warp, const Thread& last) const;
  std::uint64_t received(const Thread&, unsigned warp, unsigned lane);
  [[noreturn]] void misuse(const std::string& what);
  std::string standstill() const;
  std::string place(const Thread&) const;
  std::vector<std::size_t> order(std::size_t first, std::size_t count) {
    return in_turns(turns->order, first, count, random_);
  }
  std::size_t number(const Thread& thread) const { return static_cast<std::size_t>(&thread - threads_.data()); }

  const Launch* launch_ = nullptr;
  void (*kernel_)(void*) = nullptr;
  void* context_ = nullptr;
  std::vector<Thread> threads_;
  std::vector<std::size_t> fresh_;  ///< threads that have not started, the last first
  std::vector<std::size_t> ready_;  ///< threads that can continue, in order
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Worker*> idle_;
  Thread* now_ = nullptr;
  std::size_t done_ = 0, at_barrier_ = 0;
  std::vector<unsigned char> shared_;
  std::string error_;
  std::mt19937_64 random_;
};

Machine& machine() {
  static Machine one;
  return one;
}

std::string Machine::place(const Thread& thread) const {
  return std::string(launch_->name) + ", block " + text_of(blockIdx) + ", thread " + text_of(thread.index);
}

void Machine::work(void* worker) {
  auto& self = *static_cast<Worker*>(worker);
  for (;;) {
    self.machine->run_threads(self);
    self.fiber->suspend();
  }
}

void Machine::run_threads(Worker& worker) {
  while (!fresh_.empty() && error_.empty()) {
    Thread& thread = threads_[fresh_.back()];
    fresh_.pop_back();
    thread.state = State::ready;
    thread.worker = &worker;
    worker.thread = now_ = &thread;
    threadIdx = thread.index;
    try {
      kernel_(context_);
    } catch (const Abandoned&) {
    } catch (const std::exception& error) {
      if (error_.empty()) error_ = place(thread) + ": exception: " + error.what();
    } catch (...) {
      if (error_.empty()) error_ = place(thread) + ": exception that is not a std::exception";
    }
    thread.state = State::done;
    worker.thread = nullptr;
    ++done_;
  }
}

void Machine::resume(Worker& worker) {
  if (worker.thread != nullptr) {
    now_ = worker.thread;
    now_->state = State::ready;
    threadIdx = now_->index;
  }
  worker.fiber->resume();
  if (worker.thread == nullptr) idle_.push_back(&worker);
}

void Machine::run_block() {
  done_ = at_barrier_ = 0;
  for (Thread& thread : threads_) thread.state = State::fresh;
  fresh_ = order(0, threads_.size());
  std::reverse(fresh_.begin(), fresh_.end());
  std::vector<std::size_t> turn;
  while (error_.empty() && done_ < threads_.size()) {
    if (!fresh_.empty()) {
      if (idle_.empty()) {
        workers_.push_back(std::make_unique<Worker>(Worker{this}));
        workers_.back()->fiber = std::make_unique<Fiber>(&Machine::work, workers_.back().get());
        idle_.push_back(workers_.back().get());
      }
      Worker& worker = *idle_.back();
      idle_.pop_back();
      resume(worker);
    } else if (!ready_.empty()) {
      turn.swap(ready_);
      for (const std::size_t i : turn)
        if (error_.empty()) resume(*threads_[i].worker);
      turn.clear();
    } else if (at_barrier_ == threads_.size()) {
      release_block();
    } else {
      error_ = standstill();
    }
  }
  if (error_.empty()) return;
  for (Thread& thread : threads_)
    if (thread.state != State::fresh && thread.state != State::done) resume(*thread.worker);
}

/// Suspends the running thread until it is resumed.
void Machine::wait(State state) {
  now_->state = state;
  now_->worker->fiber->suspend();
  if (!error_.empty()) throw Abandoned();
}

void Machine::release_block() {
  const Thread& first = threads_.front();
  int sum = 0;
  for (const Thread& thread : threads_) {
    sum += thread.value;
    const bool same_file = thread.file == first.file || std::string_view(thread.file) == first.file;
    if (thread.line == first.line && same_file) continue;
    error_ = place(thread) + ": divergent barrier: it waits at " + text_of(thread.file, thread.line) + ", thread " +
             text_of(first.index) + " at " + text_of(first.file, first.line);
    return;
  }
  for (Thread& thread : threads_) thread.value = sum;
  at_barrier_ = 0;
  ready_ = order(0, threads_.size());
}

int Machine::sync_block(const char* file, int line, int value) {
  Thread& self = *now_;
  self.file = file;
  self.line = line;
  self.value = value;
  ++at_barrier_;
  wait(State::at_barrier);
  return self.value;
}

/// Whether every lane of the mask of `last` waits at the same primitive. It looks at the next lane first, which is most
/// likely to be missing.
bool Machine::complete(unsigned warp, const Thread& last) const {
  for (unsigned step = 1; step < warp_lanes; ++step) {
    const auto lane = static_cast<unsigned>(number(last) + step) % warp_lanes;
    if ((last.mask >> lane & 1U) == 0) continue;
    const std::size_t i = std::size_t{warp} * warp_lanes + lane;
    if (i >= threads_.size()) return false;
    const Thread& other = threads_[i];
    if (other.state != State::at_warp || other.mask != last.mask || other.primitive != last.primitive) return false;
  }
  return true;
}

/// The result that a lane of a complete meeting gets.
std::uint64_t Machine::received(const Thread& self, unsigned warp, unsigned lane) {
  const auto given = [&](unsigned other) { return threads_[std::size_t{warp} * warp_lanes + other].bits; };
  if (self.primitive == WarpPrimitive::sync) return 0;
  if (self.primitive == WarpPrimitive::ballot) {
    std::uint64_t votes = 0;
    for (unsigned other = 0; other < warp_lanes; ++other)
      if ((self.mask >> other & 1U) != 0 && given(other) != 0) votes |= std::uint64_t{1} << other;
    return votes;
  }
  const int width = self.width, own = static_cast<int>(lane), first = own & ~(width - 1);
  int source = own;
  if (self.primitive == WarpPrimitive::shuffle) source = first + (self.operand & (width - 1));
  if (self.primitive == WarpPrimitive::shuffle_up) source = own - self.operand;
  if (self.primitive == WarpPrimitive::shuffle_down) source = own + self.operand;
  if (self.primitive == WarpPrimitive::shuffle_xor) source = own ^ self.operand;
  if (source < first || source >= first + width) source = own;
  if ((self.mask >> source & 1) == 0) {
    error_ = place(self) + ": " + name_of(self.primitive) + " reads lane " + std::to_string(source) +
             ", which its mask leaves out";
    return 0;
  }
  return given(static_cast<unsigned>(source));
}

std::uint64_t Machine::meet_warp(WarpPrimitive primitive, unsigned mask, std::uint64_t bits, int operand, int width) {
  Thread& self = *now_;
  const auto warp = static_cast<unsigned>(number(self) / warp_lanes),
             lane = static_cast<unsigned>(number(self) % warp_lanes);
  if ((mask >> lane & 1U) == 0)
    misuse(std::string(name_of(primitive)) + " with a mask that leaves out the calling lane " + std::to_string(lane));
  if (width < 1 || width > static_cast<int>(warp_lanes) || (width & (width - 1)) != 0)
    misuse(std::string(name_of(primitive)) + " with width " + std::to_string(width) +
           "; it is a power of two up to 32");
  self.primitive = primitive;
  self.mask = mask;
  self.bits = bits;
  self.operand = operand;
  self.width = width;
  if (!complete(warp, self)) {
    wait(State::at_warp);
    return self.bits;
  }
  const std::size_t first = std::size_t{warp} * warp_lanes;
  std::array<std::uint64_t, warp_lanes> results{};
  for (unsigned other = 0; other < warp_lanes; ++other)
    if ((mask >> other & 1U) != 0) {
      const Thread& there = threads_[first + other];
      if (there.width != width)
        misuse(std::string(name_of(primitive)) + " with width " + std::to_string(width) + ", and lane " +
               std::to_string(other) + " gives " + std::to_string(there.width));
      results[other] = received(there, warp, other);
    }
  for (const std::size_t i : order(first, std::min<std::size_t>(warp_lanes, threads_.size() - first))) {
    if ((mask >> (i - first) & 1U) == 0) continue;
    threads_[i].bits = results[i - first];
    threads_[i].state = State::ready;  // it may continue at its turn
    if (&threads_[i] != &self) ready_.push_back(i);
  }
  if (!error_.empty()) throw Abandoned();
  return self.bits;
}

/// Called inside a thread: ends the launch.
void Machine::misuse(const std::string& what) {
  error_ = place(*now_) + ": " + what;
  throw Abandoned();
}

/// The reason why no thread can continue.
std::string Machine::standstill() const {
  const auto doing = [&](const Thread& thread) -> std::string {
    if (thread.state == State::done) return "has returned";
    if (thread.state == State::at_barrier) return "waits at the barrier of " + text_of(thread.file, thread.line);
    return std::string("waits at ") + name_of(thread.primitive) + " with another mask or primitive";
  };
  for (const Thread& thread : threads_) {
    if (thread.state != State::at_warp) continue;
    const std::size_t first = number(thread) / warp_lanes * warp_lanes;
    for (std::size_t lane = 0; lane < warp_lanes; ++lane) {
      if ((thread.mask >> lane & 1U) == 0) continue;
      const std::string waits = place(thread) + ": waits at " + name_of(thread.primitive) + " for lane " +
                                std::to_string(lane) + " of its mask, which ";
      if (first + lane >= threads_.size()) return waits + "the block does not have";
      const Thread& other = threads_[first + lane];
      if (other.state != State::at_warp || other.mask != thread.mask || other.primitive != thread.primitive)
        return waits + doing(other);
    }
  }
  for (const Thread& thread : threads_) {
    if (thread.state != State::at_barrier) continue;
    for (const Thread& other : threads_)
      if (other.state == State::done)
        return place(other) + ": returned before the barrier of " + text_of(thread.file, thread.line) +
               ", at which thread " + text_of(thread.index) + " waits";
  }
  return std::string(launch_->name) + ": no thread can go on";
}

void Machine::run(const Launch& launch, void (*thread)(void*), void* context) {
  check_shape(launch);
  if (!turns) turns = turns_of(std::getenv("LAMINA_THREAD_ORDER"));
  random_.seed(turns->seed);
  launch_ = &launch;
  kernel_ = thread;
  context_ = context;
  gridDim = launch.grid;
  blockDim = launch.block;
  error_.clear();
  ready_.clear();
  threads_.assign(std::size_t{launch.block.x} * launch.block.y * launch.block.z, Thread{});
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    const auto n = static_cast<unsigned>(i);
    threads_[i].index = {n % launch.block.x, n / launch.block.x % launch.block.y, n / launch.block.x / launch.block.y};
  }
  // A new allocation for each launch, so that the address sanitizer sees its end.
  shared_ = std::vector<unsigned char>(launch.shared_bytes + guard_bytes);

  const std::size_t width = launch.grid.x, height = launch.grid.y;
  for (const std::size_t block : order(0, width * height * launch.grid.z)) {
    blockIdx = {static_cast<unsigned>(block % width), static_cast<unsigned>(block / width % height),
                static_cast<unsigned>(block / width / height)};
    ++blocks_begun;
    std::fill(shared_.begin(), shared_.end() - guard_bytes, static_cast<unsigned char>(0xff));
    std::fill(shared_.end() - guard_bytes, shared_.end(), guard_byte);
    run_block();
    if (error_.empty() &&
        std::any_of(shared_.end() - guard_bytes, shared_.end(), [](unsigned char byte) { return byte != guard_byte; }))
      error_ = std::string(launch.name) + ", block " + text_of(blockIdx) + ": wrote beyond its " +
               std::to_string(launch.shared_bytes) + " bytes of dynamic shared memory";
    if (!error_.empty()) throw LaunchError(error_);
  }
  const std::string name = launch.name;
  ++launches[name.substr(0, name.find('<'))];
  instances.insert(launch.kernel);
}

}  // namespace

void set_thread_order(Order order, std::uint64_t seed) {
  const std::lock_guard lock(machine().mutex);
  machine().turns = Turns{order, seed};
}

std::map<std::string, std::uint64_t> kernels_run() {
  const std::lock_guard lock(machine().mutex);
  return machine().launches;
}

std::set<const void*> instances_run() {
  const std::lock_guard lock(machine().mutex);
  return machine().instances;
}

void run_grid(const Launch& launch, void (*thread)(void*), void* context) {
  const std::lock_guard lock(machine().mutex);
  const OpenMemory open;
  machine().run(launch, thread, context);
}

unsigned char* dynamic_shared() { return machine().dynamic_shared(); }
int sync_block(const char* file, int line, int value) { return machine().sync_block(file, line, value); }
std::uint64_t meet_warp(WarpPrimitive primitive, unsigned mask, std::uint64_t bits, int operand, int width) {
  return machine().meet_warp(primitive, mask, bits, operand, width);
}

}  // namespace lamina::cuda_host::host
