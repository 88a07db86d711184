// Choices by measurement, with algorithms that take given times.

#include "lib/tuning/measure_in_turns.h"

#include "lamina/tuning.h"
#include "tests/io/files.h"
#include "tests/support/backend.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"
#include "tests/support/guarded.h"
#include "tests/tune/race_backend.h"

using namespace lamina::test;

namespace {

std::function<double(int)> always(double seconds) {
  return [=](int) { return seconds; };
}

/// Times that are 0.1 % below `seconds` in the first `rounds` counted rounds, and 0.1 % above it in all others.
std::function<double(int)> faster_in(int rounds, double seconds) {
  return [=](int run) { return seconds * (run >= 1 && run <= rounds ? 0.999 : 1.001); };
}

const Case plain = {"", Conv{.channels = 4, .kernel = 3}, {{1, 2, 5, 5}}};
constexpr std::size_t plain_bytes = 10 * 256;  // x 200, dx 200, w 288 twice, bias 16 twice, y and dy 144

Spec spec_of(const Backend& backend, const Case& c, bool wants_dx = true) {
  return *make_spec(backend, c, {.dtype = DType::f32, .wants = {wants_dx}});
}

struct Memory : GuardedBlock {
  explicit Memory(std::size_t size) : GuardedBlock(oracle().device(), size, 1), bytes(size) {}
  std::size_t bytes;
};

/// The algorithms that a measurement picks for `plain`.
Algorithms taken_by(RaceBackend& backend, const Choice& choice = {.measure = true}, std::size_t bytes = 1 << 16) {
  const Memory buffer(bytes);
  const Choice measured =
      measure_in_turns(backend, spec_of(backend, plain), choice, buffer.data(), buffer.bytes).choice;
  CHECK(buffer.damage() == "");
  CHECK_FALSE(measured.measure);
  CHECK(backend.faults == std::vector<std::string>{});
  return measured.algorithm;
}

Algorithms all(const char* name) { return {name, name, name}; }

int count(const RaceBackend& backend, const std::string& what) {
  return static_cast<int>(std::ranges::count(backend.log, what));
}

Rounds rounds(const std::function<double(int)>& seconds) {
  Rounds made;
  for (int run = 1; run <= static_cast<int>(RaceRules().rounds); ++run) made.push_back(seconds(run));
  return made;
}

}  // namespace

/// The number of rounds by the default rules.
const int all_rounds = static_cast<int>(RaceRules().rounds);

TEST_CASE("a slow first algorithm is replaced by a fast second one, in every pass") {
  RaceBackend backend({{"slow", always(2e-3)}, {"fast", always(1e-3)}, {"middle", always(1.5e-3)}});
  CHECK(taken_by(backend) == all("fast"));
}

TEST_CASE("algorithms are ranked by the device's time, not by the host's time for launches") {
  const std::vector<Way> ways = {{.name = "one call", .seconds = always(20e-6), .launch_seconds = 4e-6},
                                 {.name = "many calls", .seconds = always(10e-6), .launch_seconds = 40e-6}};
  RaceBackend queued(ways);
  queued.device().longest = 5e-3;
  CHECK(taken_by(queued) == all("many calls"));
  CHECK_FALSE(queued.device().holds.empty());
  RaceBackend unqueued(ways);  // without a queue the times include launches
  CHECK(taken_by(unqueued) == all("one call"));
  CHECK(unqueued.device().holds.empty());
}

TEST_CASE("on a device with a queue every run begins with empty caches, for any size of workspace") {
  std::size_t written = 0;
  const auto resident = [&](int) { return std::exchange(written, 0) == (1 << 16) - plain_bytes - 4096 ? 2e-3 : 5e-4; };
  const std::vector<Way> ways = {{"steady", always(1e-3)}, {"resident", resident}, {"large", resident, 1e-6, 4096}};
  RaceBackend queued(ways);
  queued.device().longest = 5e-3;
  queued.device().at_fill = [&](std::size_t bytes) { written = bytes; };
  CHECK(taken_by(queued) == all("steady"));
  RaceBackend unqueued(ways);  // on a processor caches are not emptied
  unqueued.device().at_fill = queued.device().at_fill;
  CHECK(taken_by(unqueued) == all("resident"));
}

TEST_CASE("algorithms that differ by less than the noise keep the default order") {
  for (const int won : {0, 5, 7}) {
    RaceBackend backend({{"first", always(1e-3)}, {"second", faster_in(won, 1e-3)}});
    CHECK(taken_by(backend) == all("first"));
  }
  for (const int won : {8, 9}) {
    RaceBackend backend({{"first", always(1e-3)}, {"second", faster_in(won, 1e-3)}});
    CHECK(taken_by(backend) == all("second"));
  }
  RaceBackend equals({{"first", always(2e-3)}, {"second", always(1e-3)}, {"third", always(1e-3)}});
  CHECK(taken_by(equals) == all("second"));
}

TEST_CASE("algorithms that the pick does not beat are reported as tied, in the answer and in a plan's calls") {
  const std::vector<Way> ways = {{"slow", always(2e-3)}, {"first", always(1e-3)}, {"second", faster_in(5, 1e-3)}};
  RaceBackend backend(ways);
  const Memory buffer(1 << 16);
  const MeasuredChoice answer =
      measure_in_turns(backend, spec_of(backend, plain), {.measure = true}, buffer.data(), buffer.bytes);
  CHECK(answer.choice.algorithm == all("first"));
  for (const std::vector<std::string>& tied : answer.tied) CHECK(tied == std::vector<std::string>{"second"});

  Graph graph("race");
  conv(graph.input({1, 2, 5, 5}), "conv", {.channels = 4, .kernel = 3});
  for (const bool measured : {false, true}) {
    RaceBackend another(ways);
    const Plan plan(graph, another, {.choice = {.measure = measured}, .tuner = make_tuner()});
    REQUIRE_FALSE(plan.calls().empty());
    for (const Call& call : plan.calls()) {
      CHECK(call.algorithm == (measured ? "first" : "slow"));
      CHECK(call.tied == (measured ? std::vector<std::string>{"second"} : std::vector<std::string>{}));
    }
  }
}

TEST_CASE("one slow round out of nine does not change the choice") {
  const auto once_slow = [](int run) { return run == 4 ? 1.0 : 1e-3; };
  CHECK(winner({rounds(always(2e-3)), rounds(once_slow)}) == 1);
  CHECK(winner({rounds(once_slow), rounds(always(2e-3))}) == 0);
  CHECK(winner({rounds(once_slow), rounds(always(1e-3))}) == 0);
  CHECK(winner({rounds(always(1))}) == 0);
}

TEST_CASE("algorithms run in turns, so that a drift of the machine favours no algorithm") {
  RaceBackend backend({{"a", always(1e-3)}, {"b", always(1e-3)}, {"c", always(1e-3)}});
  taken_by(backend, {.algorithm = {"", "a", "a"}, .measure = true});
  std::vector<std::string> expected;
  for (std::size_t round = 0; round <= RaceRules().rounds; ++round)
    for (const char* name : round % 2 == 0 ? std::array{"a", "b", "c"} : std::array{"c", "b", "a"})
      expected.push_back(std::string("forward ") + name);
  CHECK(backend.log == expected);
}

TEST_CASE("an algorithm that breaks a limit does not even run") {
  RaceBackend backend({{"rule", always(4e-3)},
                       {"large", always(1e-3), 1e-6, 4096},
                       {"hasty", always(1e-3), 1e-6, 0, false},
                       {"vague", always(1e-3), 1e-2},
                       {"fit", always(2e-3)}});
  const Choice strict = {.measure = true, .deterministic = true, .max_error = 1e-5, .workspace_limit = 4095};
  CHECK(taken_by(backend, strict) == all("fit"));
  for (const char* name : {"large", "hasty", "vague"}) CHECK(count(backend, std::string("forward ") + name) == 0);
  CHECK(taken_by(backend) == all("large"));
}

TEST_CASE("passes with a named algorithm and passes that a unit lacks are not measured") {
  RaceBackend backend({{"slow", always(2e-3)}, {"fast", always(1e-3)}});
  CHECK(taken_by(backend, {.algorithm = {"slow", "", "slow"}, .measure = true}) == Algorithms{"slow", "fast", "slow"});
  CHECK(count(backend, "forward fast") == 0);
  CHECK(count(backend, "backward_data fast") == 0);

  const Memory buffer(1 << 16);
  const Spec first = spec_of(backend, plain, false);
  CHECK(measure_in_turns(backend, first, {.measure = true}, buffer.data(), buffer.bytes).choice.algorithm ==
        Algorithms{"fast", "fast", ""});
  Case inference = plain;
  inference.mode = Mode::inference;
  CHECK(measure_in_turns(backend, spec_of(backend, inference), {.measure = true}, buffer.data(), buffer.bytes)
            .choice.algorithm == Algorithms{"fast", "", ""});
}

TEST_CASE("a choice that leaves nothing to measure needs no memory and no run") {
  RaceBackend backend({{"slow", always(2e-3)}, {"fast", always(1e-3)}});
  const Spec relu = spec_of(backend, {"", Relu{}, {{1, 2, 3, 3}}});
  CHECK(measure_in_turns(backend, relu, {.measure = true}, nullptr, 0).choice.algorithm == all(""));
  CHECK(taken_by(backend, {.algorithm = all("slow"), .measure = true}, 0) == all("slow"));
  RaceBackend alone({{"only", always(1)}});
  CHECK(measure_in_turns(alone, spec_of(alone, plain), {.measure = true}, nullptr, 0).choice.algorithm == all(""));
  CHECK(backend.runs() + alone.runs() == 0);
}

TEST_CASE("an algorithm with a far slower first run leaves, unless the run is brief or it is the default") {
  const Choice forward = {.algorithm = {"", "rule", "rule"}, .measure = true};
  RaceBackend backend({{"rule", always(0.3)}, {"fast", always(0.05)}, {"hopeless", always(1.3)}});
  CHECK(taken_by(backend, forward)[0] == "fast");
  CHECK(count(backend, "forward hopeless") == 1);
  CHECK(count(backend, "forward rule") == 1 + all_rounds);
  RaceBackend brief({{"rule", always(1e-3)}, {"brief", [](int run) { return run == 0 ? 9e-3 : 5e-4; }}});
  CHECK(taken_by(brief, forward)[0] == "brief");
}

TEST_CASE("an algorithm that does not fit into the lent memory takes no part, or is an error if it is the default") {
  RaceBackend backend({{"rule", always(2e-3)}, {"large", always(1e-3), 1e-6, 1000}});
  CHECK(taken_by(backend, {.measure = true}, plain_bytes + 1000) == all("large"));
  CHECK(taken_by(backend, {.measure = true}, plain_bytes + 999) == all("rule"));
  CHECK(taken_by(backend, {.measure = true}, plain_bytes) == all("rule"));
  CHECK_THROWS_MATCHES(taken_by(backend, {.measure = true}, plain_bytes - 1), Unsupported,
                       Says("race: conv", std::to_string(plain_bytes), std::to_string(plain_bytes - 1)));
}

TEST_CASE("each algorithm reads the parameters that it prepared") {
  RaceBackend backend({{"a", always(2e-3), 1e-6, 64, true, 300}, {"b", always(1e-3), 1e-6, 64, true, 700}});
  CHECK(taken_by(backend) == all("b"));
  CHECK(taken_by(backend, {.measure = true}, plain_bytes + 3 * 256 + 64) == all("b"));
  // In backward races the forward pass uses the default algorithm, which needs less memory.
  CHECK(taken_by(backend, {.measure = true}, plain_bytes + 3 * 256 + 63) == Algorithms{"a", "b", "b"});
}

TEST_CASE("while a folded batch norm is measured, its operands are bound, and results are finite") {
  Case folded = {"", Conv{.channels = 4, .kernel = 3, .bias = false}, {{2, 3, 9, 9}}, {{BatchNorm{}}, {Relu{}}}};
  folded.mode = Mode::inference;
  const Spec spec = spec_of(oracle(), folded);
  const Memory buffer(1 << 20);
  int looks = 0;
  TuningRules rules;
  rules.look = [&](LayerTuning::Candidate& one, const Spec& unit, const Args& args) {
    INFO(one.algorithm);
    ++looks;
    one.measured.runs_compared = 1;
    REQUIRE(args.state.size() == unit.state.size());
    for (std::int64_t k = 0; k < args.state[1].shape.count(); ++k) CHECK(args.state[1].as<float>()[k] > 0);
    for (std::int64_t i = 0; i < args.y.shape.count(); ++i) REQUIRE(std::isfinite(args.y.as<float>()[i]));
  };
  const LayerTuning seen = tune(oracle(), spec, Pass::forward, {}, buffer.data(), buffer.bytes, rules);
  CHECK(buffer.damage() == "");
  CHECK(seen.candidates.size() > 2);
  CHECK(looks >= static_cast<int>(seen.candidates.size()));
}

TEST_CASE("every long run is inspected, and of brief runs four, even if the first run is long by chance") {
  const double brief = 1e-5, lengthy = 1.0;
  int looked = 0;
  const auto time = [&](double seconds) {
    inspect_timed_run(
        oracle().device(), looked, seconds, [] {}, [&] { ++looked; });
    return looked;
  };
  CHECK(time(lengthy) == 1);
  CHECK(time(brief) == 4);
  CHECK(time(brief) == 4);
  CHECK(time(lengthy) == 5);
  looked = 0;
  CHECK(time(brief) == 4);
}

TEST_CASE("an algorithm that is far slower on one image and would take too long does not run on the batch") {
  Case batch = plain;
  batch.x = {{8, 2, 5, 5}};
  const Choice forward = {.algorithm = {"", "rule", "rule"}, .measure = true};
  RaceBackend backend({{"rule", always(1e-3)}, {"slow", always(0.2)}, {"fast", always(5e-4)}});
  const Memory buffer(1 << 16);
  std::vector<LayerTuning> seen;
  measure_in_turns(backend, spec_of(backend, batch), forward, buffer.data(), buffer.bytes,
                   [&](LayerTuning one) { seen.push_back(std::move(one)); });
  CHECK(count(backend, "forward slow") == 1);
  const LayerTuning::Candidate& slow = seen.at(0).candidates.at(1);
  CHECK(slow.measured.of_one_image);
  CHECK(slow.measured.seconds == Rounds{8 * 0.2});
  CHECK(seen.at(0).candidates.at(*seen.at(0).picked.best).algorithm == "fast");
}

TEST_CASE("measured choices are kept in a file, and not measured again") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  const Memory buffer(1 << 16);
  const std::vector<Way> ways = {{"slow", always(2e-3)}, {"fast", always(1e-3)}};
  RaceBackend backend(ways);
  const Spec spec = spec_of(backend, plain);
  const auto measure = [&](RaceBackend& on, const Choice& choice) {
    return make_tuner(file)->measure(on, spec, choice, buffer.data(), buffer.bytes).choice;
  };
  CHECK(measure(backend, {.measure = true}).algorithm == all("fast"));
  CHECK(backend.runs() > 0);
  CHECK(ChoiceCache(file).entries().size() == 1);

  RaceBackend again(ways);
  const Choice known = measure(again, {.measure = true});
  CHECK(known.algorithm == all("fast"));
  CHECK_FALSE(known.measure);
  CHECK(again.runs() == 0);
  measure(again, {.measure = true, .workspace_limit = 1});
  CHECK(again.runs() > 0);
  CHECK(ChoiceCache(file).entries().size() == 2);

  make_tuner(file)->measure(again, spec_of(again, {"", Relu{}, {{1, 2, 3, 3}}}), {.measure = true}, nullptr, 0);
  CHECK(ChoiceCache(file).entries().size() == 2);
}

TEST_CASE("a file of choices that cannot be read is an error before anything is measured") {
  const Folder folder;
  const std::string file = folder.file("choices.json");
  write(file, "{\"choices\": [");
  CHECK_THROWS_MATCHES(make_tuner(file), FileError, Says(file));
  CHECK(contents(file) == "{\"choices\": [");
}
