// Races of candidates with known times.

#include "lamina/tuning.h"

#include "tests/support/catch.h"

using namespace lamina;

namespace {

/// The seconds of a candidate in run 0, which warms up, and in run 1, 2, ...
using Answers = std::function<std::optional<double>(std::size_t run)>;

Answers every_run(double seconds) {
  return [=](std::size_t) { return seconds; };
}

std::vector<Raced> race_of(const std::vector<Answers>& told, const RaceRules& rules = {}) {
  std::vector<std::size_t> runs(told.size(), 0);
  return race(
      told.size(), [&](std::size_t i) { return told[i](runs[i]++); }, rules);
}

std::vector<std::size_t> rounds_of(const std::vector<Raced>& raced) {
  std::vector<std::size_t> rounds;
  for (const Raced& one : raced) rounds.push_back(one.rounds.size());
  return rounds;
}

}  // namespace

TEST_CASE("a candidate that is far slower leaves a race after three rounds, except the first candidate") {
  const std::vector<Raced> raced = race_of({every_run(2.5e-3), every_run(1e-3), every_run(1.9e-3), every_run(2.1e-3)});
  CHECK(rounds_of(raced) == std::vector<std::size_t>{9, 9, 9, 3});
  CHECK(raced[2].finished);
  CHECK_FALSE(raced[3].finished);
  // this candidate's interval reaches down to the leader's time
  const Answers wavering = [](std::size_t run) { return run == 2 ? 0.5e-3 : 4e-3; };
  CHECK(rounds_of(race_of({every_run(1e-3), wavering}))[1] > 3);
}

TEST_CASE("a race ends after its rounds or its time, but not before there is an interval") {
  CHECK(rounds_of(race_of({every_run(1e-3), every_run(1e-3)}, {.rounds = 4})) == std::vector<std::size_t>{4, 4});
  CHECK(rounds_of(race_of({every_run(1.0), every_run(1.0)}, {.seconds = 3})) == std::vector<std::size_t>{6, 6});
  CHECK(rounds_of(race_of({every_run(1.0), every_run(1.0)}, {.seconds = 15})) == std::vector<std::size_t>{7, 7});
  CHECK(rounds_of(race_of({every_run(1e-3), every_run(1.0)})) == std::vector<std::size_t>{6, 0});
}

TEST_CASE("a candidate that fails in a run leaves a race, and its rounds are dropped") {
  const Answers failing = [](std::size_t run) { return run < 5 ? std::optional<double>(1e-3) : std::nullopt; };
  const std::vector<Raced> raced = race_of({failing, every_run(1e-3), every_run(1e-3)});
  CHECK(rounds_of(raced) == std::vector<std::size_t>{0, 9, 9});
  CHECK_FALSE(raced[0].finished);
  const Answers broken = [](std::size_t) { return std::optional<double>(); };
  CHECK(rounds_of(race_of({broken, broken})) == std::vector<std::size_t>{0, 0});
}

TEST_CASE("the factor of a win is compared with the interval, not with the median") {
  const Rounds leader(9, 1.0), quick(9, 0.8);
  Rounds wavering = quick;
  wavering[0] = wavering[1] = 0.95;
  CHECK(beats(quick, leader, 1.1));
  CHECK_FALSE(beats(quick, leader, 1.3));
  CHECK(beats(wavering, leader));
  CHECK_FALSE(beats(wavering, leader, 1.1));
  CHECK(winner({leader, wavering, quick}, 1.1) == 2);
  CHECK_FALSE(beats({0.1, 0.1}, leader));  // a candidate with two rounds has left the race
}
