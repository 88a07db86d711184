// Which candidates are Pareto optimal, on made-up measurements with obvious answers.

#include "bench/tasks/frontier.h"

#include <limits>

#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

/// A measurement of nine rounds around `milliseconds`.
Measurement measured(double milliseconds, std::size_t workspace, double error, double spread = 0) {
  Measurement one;
  for (int round = 0; round < 9; ++round) one.seconds.push_back(1e-3 * (milliseconds + spread * (round % 3 - 1)));
  one.finished = true;
  one.workspace_bytes = workspace;
  one.error = error;
  return one;
}

std::vector<bench::Candidate> candidates(const std::vector<Measurement>& all) {
  std::vector<bench::Candidate> made;
  for (const Measurement& one : all) made.push_back({.algorithm = "a", .measured = one});
  return made;
}

LayerTuning::Picked picked(const std::vector<Measurement>& all, const Choice& limits) {
  return pick_within({Spec(), Pass::forward, candidates(all)}, limits);
}

}  // namespace

TEST_CASE("a candidate stays if no other candidate is better in time, workspace and error") {
  const std::vector<Measurement> all = {
      measured(10, 1000, 1e-6),  // the fastest
      measured(20, 0, 1e-6),     // needs no workspace
      measured(90, 0, 1e-9),     // the most exact
      measured(15, 500, 1e-6),   // between the first two
      measured(25, 0, 1e-6),     // slower than the second, and better in nothing
      measured(12, 2000, 1e-5),  // worse than the first in everything
      measured(91, 10, 1e-9),    // worse than the third
      {},                        // did not run
  };
  CHECK(not_beaten(candidates(all)) == std::vector<bool>{true, true, true, true, false, false, false, false});
}

TEST_CASE("a candidate that left the race beats no candidate that stayed, even if its few rounds were fast") {
  Measurement stayed = measured(10, 100, 1e-6);
  stayed.seconds[0] = 0.080;  // another program ran in this round
  Measurement left = measured(40, 0, 1e-9);
  left.seconds.resize(2);
  left.finished = false;
  CHECK(not_beaten(candidates({stayed, left})) == std::vector<bool>{true, true});
  left.finished = true;  // two rounds are compared: too few to tell which is faster
  CHECK(not_beaten(candidates({stayed, left})) == std::vector<bool>{false, true});
}

TEST_CASE("candidates tied in time are judged by workspace and error, and equal candidates all stay") {
  // The first three have the same mean, but different times in each round. The second and the third need less workspace
  // than the first. The last is slower.
  std::vector<Measurement> all = {measured(10, 100, 1e-6, 1), measured(10, 50, 1e-6), measured(10, 50, 1e-6, -1),
                                  measured(14, 50, 1e-6, 1)};
  CHECK(not_beaten(candidates(all)) == std::vector<bool>{false, true, true, false});
  CHECK(picked(all, {}).best == std::size_t{0});
  CHECK(picked(all, {}).ties == std::vector<std::size_t>{1, 2});
  CHECK(not_beaten({}).empty());
  // A disturbance of both candidates in a round does not make them tied.
  for (Measurement* one : {&all[0], &all[3]})
    for (std::size_t round = 0; round < 9; ++round) one->seconds[round] *= 1.0 + static_cast<double>(round);
  CHECK(dominates(all[0], measured(10, 100, 1e-6, 1)) == false);
  all[3].workspace_bytes = 100;
  CHECK(dominates(all[0], all[3]));
}

TEST_CASE("a candidate that is nondeterministic, as declared or as seen, does not beat a deterministic candidate") {
  std::vector<Measurement> all = {measured(10, 0, 1e-6), measured(20, 0, 1e-6)};
  CHECK(not_beaten(candidates(all)) == std::vector<bool>{true, false});
  bool& lost = GENERATE(true, false) ? all[0].deterministic : all[0].same_bits;
  lost = false;
  CHECK(not_beaten(candidates(all)) == std::vector<bool>{true, true});
  CHECK(picked(all, {}).best == std::size_t{0});
  CHECK(picked(all, {.deterministic = true}).best == std::size_t{1});
}

TEST_CASE("the fastest candidate within every limit is taken") {
  const std::vector<Measurement> all = {measured(10, 1000, 1e-3), measured(20, 100, 1e-5), measured(30, 0, 1e-8),
                                        measured(5, 0, infinite)};
  CHECK(picked(all, {}).best == std::size_t{3});
  CHECK(picked(all, {.max_error = 1e-2}).best == std::size_t{0});
  CHECK(picked(all, {.max_error = 1e-2, .workspace_limit = 999}).best == std::size_t{1});
  CHECK(picked(all, {.max_error = 1e-3, .workspace_limit = 1000}).best == std::size_t{0});
  CHECK(picked(all, {.max_error = 1e-6}).best == std::size_t{2});
  CHECK_FALSE(picked(all, {.max_error = 1e-9}).best.has_value());
  CHECK_FALSE(picked({}, {}).best.has_value());
  // A candidate beyond a limit is not among the ties.
  CHECK(picked({measured(10, 10, 0), measured(10, 20, 0)}, {.workspace_limit = 10}).ties.empty());
  // A candidate that left the race is picked only if no other candidate is within the limits. Among several, the one
  // with the least median is picked.
  std::vector<Measurement> left = {measured(90, 0, 1e-9), measured(50, 0, 1e-9), measured(60, 0, 1e-3)};
  left[0].finished = left[1].finished = false;
  CHECK(picked(left, {}).best == std::size_t{2});
  CHECK(picked(left, {.max_error = 1e-6}).best == std::size_t{1});
}
