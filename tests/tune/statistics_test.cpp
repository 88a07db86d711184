// Medians with intervals: compared with a table that Python tests also check, and the frequency with which intervals
// hold the true value.

#include "lamina/statistics.h"

#include <fstream>
#include <nlohmann/json.hpp>
#include <random>

#include "tests/support/catch.h"
#include "tests/support/data.h"

using namespace lamina;
using Catch::Matchers::WithinULP;

namespace {

nlohmann::json table() {
  std::ifstream file(test::data("intervals.json"));
  return nlohmann::json::parse(file);
}

void check(const Interval& found, const nlohmann::json& expected) {
  CHECK_THAT(found.low, WithinULP(expected.at("low").get<double>(), 1));
  CHECK_THAT(found.middle, WithinULP(expected.at("middle").get<double>(), 1));
  CHECK_THAT(found.high, WithinULP(expected.at("high").get<double>(), 1));
}

/// Positive, skewed numbers with a median of log 2.
double draw(std::mt19937_64& engine) { return -std::log(std::ldexp(static_cast<double>((engine() >> 11) + 1), -53)); }

/// The deviation of `held` hits in `trials` from the exact probability, in standard deviations.
double surprise(int held, int trials, double probability) {
  return (held - trials * probability) / std::sqrt(trials * probability * (1 - probability));
}

constexpr int trials = 20000;
constexpr double surprising = 4;  // exceeded once in 16000 draws; the draw here is fixed

}  // namespace

TEST_CASE("ranks and intervals match the table that C++ and Python tests check") {
  const nlohmann::json all = table();
  CHECK(all.at("level") == interval_level);
  for (const auto& row : all.at("ranks"))
    CHECK(interval_rank(row.at("samples").get<std::size_t>()) == row.at("rank").get<std::size_t>());
  for (const auto& row : all.at("medians")) check(median_interval(row.at("samples")), row);
  for (const auto& row : all.at("ratios")) check(ratio_interval(row.at("first"), row.at("second")), row);
}

TEST_CASE("at least six samples are needed for an interval of 95 %") {
  const nlohmann::json all = table();
  for (const auto& row : all.at("ranks")) {
    const auto samples = row.at("samples").get<std::size_t>();
    CHECK((interval_rank(samples) > 0) == (samples >= fewest_samples));
    CHECK((row.at("coverage") >= interval_level) == (samples >= fewest_samples));
  }
}

TEST_CASE("an interval holds the true median as often as the binomial distribution says") {
  std::mt19937_64 engine(11);
  const nlohmann::json all = table();
  for (const auto& row : all.at("ranks")) {
    const auto samples = row.at("samples").get<std::size_t>();
    if (samples != 5 && samples != 6 && samples != 9 && samples != 17) continue;
    int held = 0;
    for (int trial = 0; trial < trials; ++trial) {
      std::vector<double> drawn(samples);
      for (double& one : drawn) one = draw(engine);
      const Interval found = median_interval(drawn);
      held += found.low <= std::log(2.0) && std::log(2.0) <= found.high ? 1 : 0;
    }
    CHECK(std::abs(surprise(held, trials, row.at("coverage"))) < surprising);
  }
}

TEST_CASE("the interval of a ratio holds the true ratio as often as computed, even if the rounds drift") {
  constexpr std::size_t rounds = 9;
  constexpr double coverage = 1 - 20.0 / 512;  // ranks 2 and 8 of 9
  std::mt19937_64 engine(12);
  int held = 0, decided = 0;
  for (int trial = 0; trial < trials; ++trial) {
    std::vector<double> first, second;
    for (std::size_t round = 0; round < rounds; ++round) {
      const double drift = std::pow(2.0, static_cast<double>(round));
      first.push_back(drift * (1 + 0.1 * draw(engine)));
      second.push_back(1.25 * drift * (1 + 0.1 * draw(engine)));
    }
    const Interval found = ratio_interval(first, second);
    held += found.low <= 1.25 && 1.25 <= found.high ? 1 : 0;
    decided += found.low > 1 ? 1 : 0;
  }
  CHECK(std::abs(surprise(held, trials, coverage)) < surprising);
  CHECK(decided > 0.9 * trials);  // unpaired medians would not find the difference in a drift of 256
}
