// The measured rate of multiply-adds in registers. It counts the operations of the instruction set on every thread, and
// no product exceeds it.

#include "lib/backends/eigen/runtime/peak.h"

#include <chrono>
#include <mutex>
#include <thread>

#include "lamina/plan.h"
#include "tests/eigen/sets.h"

using namespace lamina::test;

namespace {

template <class T>
void check_count(const eigen::RegisterSums<T>& sums) {
  const auto count = static_cast<double>(sums.count);
  const double start = sums.total(0, T(1), T(1));
  CHECK(start == count * (count - 1) / 2);
  for (const int steps : {1, 2, 7, 1000}) CHECK(sums.total(steps, T(1), T(1)) - start == steps * count);
  CHECK(sums.total(100, T(0.5), T(0.5)) == count);
}

std::mutex mutex;
std::set<std::thread::id> seen;

/// Takes one microsecond per step, and records its thread.
double slowly(std::int64_t steps, float, float) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(steps);
  {
    const std::lock_guard lock(mutex);
    seen.insert(std::this_thread::get_id());
  }
  std::this_thread::sleep_until(end);
  return 0;
}

}  // namespace

TEST_CASE("each of the sums in registers takes one multiply-add per step, on every instruction set") {
  std::vector<const eigen::InstructionSet*> sets = sets_here();
  for (const eigen::InstructionSet* set : pair_sets_here()) sets.push_back(set);
  for (const eigen::InstructionSet* set : sets) {
    INFO(set->name);
    check_count(set->of<float>().sums);
    check_count(set->of<double>().sums);
    if (set->pairs == nullptr) continue;
    const eigen::RegisterSums<float>& pairs = set->pairs->sums;
    for (const int steps : {1, 7, 1000})
      CHECK(pairs.total(steps, 1, 1) - pairs.total(0, 1, 1) == steps * static_cast<double>(pairs.count));
  }
}

TEST_CASE("a peak counts two operations per multiply-add, on every thread") {
  const eigen::InstructionSet& real = *eigen::instruction_sets().back();
  constexpr int count = 5, threads = 3;
  const eigen::RegisterSums<float> slow = {count, slowly};
  const eigen::KernelsOf<float> f32 = {real.f32.kernels, real.f32.kernels_6x2, slow};
  const eigen::InstructionSet fake = {
      "fake", f32, real.f64, real.lower, real.conv, real.connected, real.update, real.check_overflow, real.convert};
  eigen::ThreadPool pool(threads);
  seen.clear();
  const double rate = eigen::peak_flops_per_second(pool, fake, DType::f32), exact = 2e6 * count * threads;
  CHECK(seen.size() == threads);
  CHECK(rate <= exact);                                                   // no step is shorter than a microsecond
  CHECK(rate > 0.75 * exact);                                             // two of three threads would give 2/3
  CHECK(eigen::peak_flops_per_second(pool, fake, DType::bf16) <= exact);  // halves are computed in f32
  CHECK_THROWS_AS(eigen::peak_flops_per_second(pool, fake, DType::u64), Unsupported);
}

#if defined(LAMINA_TEST_RATES)
namespace {

/// The operations per second of a product that fits into the caches: the fastest of some passes.
double product_flops_per_second(Backend& backend) {
  Graph graph("product");
  conv(graph.input({1, 256, 24, 24}), "conv", {.channels = 256, .kernel = 1, .bias = false});
  Plan plan(graph, backend, {.mode = Mode::inference});
  double best = 0;
  for (int i = 0; i < 20; ++i) {
    const auto start = std::chrono::steady_clock::now();
    plan.forward();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    best = std::max(best, 2 * static_cast<double>(graph.multiply_adds()) / seconds.count());
  }
  return best;
}

}  // namespace

TEST_CASE("a backend's peak is the peak of its instruction set, and no product exceeds it") {
  constexpr double noise = 0.1;
  for (const eigen::InstructionSet* set : sets_here()) {
    const auto backend = make_backend("eigen", {.threads = 1, .instruction_set = set->name});
    eigen::ThreadPool pool(1);
    double peak = 0, of_set = 0, product = 0;
    for (int round = 0; round < 12; ++round) {  // in turns, because other programs may slow some rounds
      peak = std::max(peak, backend->peak_flops_per_second(DType::f32));
      of_set = std::max(of_set, eigen::peak_flops_per_second(pool, *set, DType::f32));
      product = std::max(product, product_flops_per_second(*backend));
    }
    INFO(set->name << ": peak " << peak << ", of the set " << of_set << ", a product " << product);
    CHECK(peak == Approx(of_set).epsilon(noise));
    CHECK(product < peak * (1 + noise));
  }
}
#endif
