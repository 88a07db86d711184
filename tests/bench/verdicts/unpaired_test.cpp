// The statistics of two runs that took no turns. The ranks are compared with published critical values, and the
// intervals must hold the true ratio often enough.

#include "bench/compare/unpaired.h"

#include <random>

#include "tests/support/catch.h"

using namespace lamina::bench;
using lamina::Interval;

namespace {

/// Positive, skewed numbers.
double draw_run(std::mt19937_64& engine) {
  return 1 - 0.1 * std::log(std::uniform_real_distribution<>(1e-12, 1)(engine));
}

std::vector<double> run(std::mt19937_64& engine, std::size_t samples, double ratio) {
  std::vector<double> seconds(samples);
  for (double& each : seconds) each = ratio * draw_run(engine);
  return seconds;
}

}  // namespace

TEST_CASE("the ranks of an interval are one more than the critical values of Mann and Whitney's table") {
  // The greatest U that is significant in a two-sided test at 5 %.
  struct Entry {
    std::size_t n, m, u;
  };
  for (const auto& [n, m, u] :
       {Entry{4, 4, 0}, {5, 5, 2}, {5, 8, 6}, {8, 5, 6}, {9, 9, 17}, {10, 10, 23}, {20, 20, 127}}) {
    CAPTURE(n, m);
    CHECK(unpaired_rank(n, m) == u + 1);
  }
  CHECK(unpaired_rank(3, 3) == 0);
  CHECK(unpaired_rank(0, 5) == 0);
  CHECK(unpaired_rank(4, 4, 0.99) == 0);
  CHECK(unpaired_rank(5, 5, 0.99) == 1);
}

TEST_CASE("exact and normal ranks agree where the normal ranks take over") {
  const auto exact = static_cast<double>(unpaired_rank(25, 25)), normal = static_cast<double>(unpaired_rank(26, 26));
  CHECK(exact == 212);  // one more than U = 211
  CHECK(normal > exact);
  CHECK(normal < 1.15 * exact);
}

TEST_CASE("the ratio of two runs is the median of all pairs, and equal runs have ratio 1") {
  const Interval found = unpaired_ratio_interval({1, 2}, {3, 8});
  CHECK(found.low == 1.5);
  CHECK(found.middle == 3.5);
  CHECK(found.high == 8);
  const Interval equal = unpaired_ratio_interval({0, 0}, {0, 0});
  CHECK(equal.low == 1);
  CHECK(equal.high == 1);
}

TEST_CASE("for many samples the ratios are found without a list of all pairs, and are the same as with the list") {
  std::mt19937_64 engine(9);
  const std::vector<double> first = run(engine, 101, 1), second = run(engine, 103, 1.1);
  const Interval found = unpaired_ratio_interval(first, second);
  std::vector<double> all;
  for (const double a : first)
    for (const double b : second) all.push_back(b / a);
  std::sort(all.begin(), all.end());
  const std::size_t rank = unpaired_rank(101, 103);
  CHECK(found.low == Approx(all[rank - 1]).epsilon(1e-14));
  CHECK(found.middle == Approx(all[101 * 103 / 2]).epsilon(1e-14));
  CHECK(found.high == Approx(all[101 * 103 - rank]).epsilon(1e-14));
}

TEST_CASE("an interval of two runs holds the true ratio as often as its level says, for few and for many samples") {
  std::mt19937_64 engine(7);
  for (const std::size_t samples : {9, 40}) {
    CAPTURE(samples);
    constexpr int trials = 2000;
    int held = 0;
    for (int i = 0; i < trials; ++i) {
      const Interval found = unpaired_ratio_interval(run(engine, samples, 1), run(engine, samples + 2, 1.3));
      held += found.low <= 1.3 && found.high >= 1.3 ? 1 : 0;
    }
    CHECK(held > 0.94 * trials);
    CHECK(held < 0.975 * trials);
  }
}

TEST_CASE("samples that resemble their predecessors count as fewer samples, and independent samples count in full") {
  std::mt19937_64 engine(3);
  CHECK(autocorrelation_factor(run(engine, 1000, 1)) < 1.15);
  std::vector<double> slow(1000), alternating(1000);
  for (std::size_t i = 0; i < slow.size(); ++i) {
    slow[i] = 1 + static_cast<double>(i / 10 * 7919 % 100);  // each value occurs ten times
    alternating[i] = i % 2 == 0 ? 1 : 2;
  }
  CHECK(autocorrelation_factor(slow) > 8);
  CHECK(autocorrelation_factor(alternating) == 1);
  CHECK(autocorrelation_factor({1, 2, 3}) == 1);
  CHECK(autocorrelation_factor(std::vector<double>(9, 1)) == 1);  // all equal, as with a coarse clock
  std::vector<double> coarse(1000);
  for (double& each : coarse) each = std::round(draw_run(engine) * 10);
  CHECK(autocorrelation_factor(coarse) < 1.15);
}

TEST_CASE("if samples count as fewer by a factor, their interval is wider on both sides by the root of the factor") {
  const Interval found = inflate({0.9, 1, 1.1}, 4);
  CHECK(found.low == Approx(0.81));
  CHECK(found.middle == 1);
  CHECK(found.high == Approx(1.21));
  CHECK(inflate({0.9, 1, 1.1}, 1).low == Approx(0.9));
}

TEST_CASE("the number of samples that is asked for gives an interval of the wanted width") {
  CHECK(normal_quantile(0.95) == Approx(1.959964));
  std::mt19937_64 engine(5);
  const double spread = robust_spread(run(engine, 20000, 1));
  const std::size_t samples = samples_to_resolve(0.02, spread);
  double half = 0;
  constexpr int trials = 50;
  for (int i = 0; i < trials; ++i) {
    const Interval found = unpaired_ratio_interval(run(engine, samples, 1), run(engine, samples, 1));
    half += (found.high - found.low) / 2 / trials;
  }
  CHECK(half < 0.022);
  CHECK(half > 0.01);
}

TEST_CASE("one disturbed sample in ten hardly changes the spread, and neither do three in ten from another state") {
  std::vector<double> seconds(101);
  for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = 1 + 0.001 * static_cast<double>(i);
  const double before = robust_spread(seconds);
  for (std::size_t i = 91; i < seconds.size(); ++i) seconds[i] = 50;
  CHECK(robust_spread(seconds) == Approx(before).epsilon(0.15));
  for (std::size_t i = 71; i < seconds.size(); ++i) seconds[i] = 2 + 0.001 * static_cast<double>(i);
  CHECK(robust_spread(seconds) == Approx(0.7 * before / (0.7 * 0.7 + 0.3 * 0.3)).epsilon(0.05));
  CHECK(robust_spread({1, 1}) == 0);
  CHECK(robust_spread({1}) == 0);
}
