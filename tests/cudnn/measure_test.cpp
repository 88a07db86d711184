// Algorithms measured on a fake, with a clock that the test sets.

#include <functional>

#include "lamina/choice_cache.h"
#include "lamina/error.h"
#include "lamina/plan.h"
#include "lamina/tuning.h"
#include "lib/tuning/measure_in_turns.h"
#include "tests/cudnn/bound.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// A fake whose measurements are kept.
struct MeasuringBackend : FakeBackend {
  explicit MeasuringBackend(std::size_t version = 91900, const std::filesystem::path& file = {})
      : FakeBackend(version), cache(file.empty() ? std::nullopt : std::optional<ChoiceCache>(file)) {}

  MeasuredChoice measure(const Spec& spec, const Choice& choice, void* buffer, std::size_t buffer_bytes) {
    const auto race = [&] {
      return measure_in_turns(backend, spec, choice, buffer, buffer_bytes,
                              [this](LayerTuning its) { seen.push_back(std::move(its)); });
    };
    return cache ? cache->find_or_measure(backend, spec, choice, race) : race();
  }

  std::optional<ChoiceCache> cache;
  std::vector<LayerTuning> seen;
};

const Case measured_case = {"", Conv{.channels = 4, .kernel = 3}, {{1, 2, 5, 5}}};

/// Seconds of one algorithm in the rounds 0, which warms up, to 9.
using Told = std::function<double(int round)>;

Told always(double seconds) {
  return [=](int) { return seconds; };
}

/// Sets the clock's times for a race of these, in the order in which they enter. All are within a factor of 2.
void tell(MachineLog& log, const std::vector<Told>& algorithms) {
  const std::size_t count = algorithms.size();
  for (std::size_t round = 0; round <= RaceRules().rounds; ++round)
    for (std::size_t k = 0; k < count; ++k)
      log.device.seconds.push_back(algorithms[round % 2 == 0 ? k : count - 1 - k](static_cast<int>(round)));
}

/// The times of `count` algorithms: the fast one takes 2 ms, the others 3.
std::vector<Told> one_fast(std::size_t count, std::size_t fast) {
  std::vector<Told> told(count, always(3e-3));
  told[fast] = always(2e-3);
  return told;
}

/// "a", "a taken", "a tied" or "a refused", the rule's pick first.
std::vector<std::string> words(const LayerTuning& tuning) {
  std::vector<std::string> all;
  for (const LayerTuning::Candidate& one : tuning.candidates)
    all.push_back(one.algorithm + (one.refused.empty() ? "" : " refused"));
  for (const std::size_t i : tuning.picked.ties) all[i] += " tied";
  all[*tuning.picked.best] += " taken";
  return all;
}

/// Why the algorithm was refused, or nothing.
std::string refusal(const LayerTuning& tuning, const std::string& algorithm) {
  for (const LayerTuning::Candidate& one : tuning.candidates)
    if (one.algorithm == algorithm) return one.refused;
  return "no such algorithm";
}

}  // namespace

TEST_CASE("cudnn: measuring names the fastest of each pass, in the memory that is lent, in turns") {
  MeasuringBackend on;
  const Spec spec = spec_of(on, measured_case, {.dtype = DType::f32, .adds = true});
  on.fake.workspace_status[2] = 3000;                // gemm, and fft in both gradients
  tell(on.log, one_fast(7, 4));                      // forward: the fifth that runs is fft_tiling
  tell(on.log, one_fast(5, 1));                      // params: algo_1
  tell(on.log, std::vector<Told>(5, always(3e-3)));  // data: all tied, the rule's algo_0 stays
  std::vector<char> buffer(1 << 20);
  const Choice taken = on.measure(spec, {.measure = true}, buffer.data(), buffer.size()).choice;
  CHECK(taken.algorithm == std::array<std::string, 3>{"fft_tiling", "algo_1", "algo_0"});
  CHECK_FALSE(taken.measure);
  CHECK(on.log.device.seconds.empty());

  REQUIRE(on.seen.size() == 3);
  const LayerTuning& forward = on.seen[0];
  CHECK(forward.pass == Pass::forward);
  CHECK(words(forward) == std::vector<std::string>{"implicit_gemm", "implicit_precomp_gemm", "gemm refused", "direct",
                                                   "fft", "fft_tiling taken", "winograd", "winograd_nonfused"});
  CHECK(forward.candidates[5].measured.seconds == Rounds(RaceRules().rounds, 2e-3));
  CHECK(forward.candidates[5].measured.workspace_bytes == 600);
  CHECK_THAT(forward.candidates[2].refused, Catch::Matchers::ContainsSubstring("NOT_SUPPORTED"));
  CHECK(words(on.seen[2]) == std::vector<std::string>{"algo_0 taken", "algo_1 tied", "fft refused", "fft_tiling tied",
                                                      "winograd tied", "winograd_nonfused tied"});

  int adding = 0;
  for (const std::string& call : on.fake.calls) adding += call.find("ConvolutionBackwardData(") == 0 ? 1 : 0;
  CHECK(adding == 5 * (1 + static_cast<int>(RaceRules().rounds)));
  CHECK(on.log.device.allocations == 0);
}

TEST_CASE("cudnn: one slow round of the fastest algorithm does not lose it the race") {
  MeasuringBackend on;
  on.fake.answers[Pass::forward] = {result(0), result(1)};
  for (int other = 2; other < 8; ++other) on.fake.workspace_status[other] = 3000;
  on.fake.workspace = {{0, 0}, {1, 1000}};
  tell(on.log, {always(4.8e-3), [](int round) { return round == 4 ? 5e-3 : 1e-3; }});
  std::vector<char> buffer(1 << 20);
  Case inference = measured_case;
  inference.mode = Mode::inference;
  const Choice taken = on.measure(spec_of(on, inference), {.measure = true}, buffer.data(), buffer.size()).choice;
  CHECK(taken.algorithm[0] == "implicit_precomp_gemm");
  CHECK(on.seen.at(0).picked.ties.empty());
}

TEST_CASE("cudnn: an algorithm that refuses or fails while it runs is out, be it the rule's, and the race goes on") {
  for (const cudnn::Status status : {4004, 3000, 5000}) {
    MeasuringBackend on;
    on.fake.fail_status = status;
    on.fake.fail_call_of = "ConvolutionForward";
    on.fake.fail_algorithm = 0;  // the rule's
    Case inference = measured_case;
    inference.mode = Mode::inference;
    const Spec spec = spec_of(on, inference);
    std::vector<char> buffer(1 << 20);
    const Choice taken = on.measure(spec, {.measure = true}, buffer.data(), buffer.size()).choice;
    CHECK(taken.algorithm[0] == "implicit_precomp_gemm");
    const LayerTuning& seen = on.seen.at(0);
    CHECK(seen.candidates.front().by_rule);
    CHECK_THAT(refusal(seen, "implicit_gemm"), Catch::Matchers::ContainsSubstring(std::to_string(status)));

    on.fake.status["ConvolutionForward"] = status;  // of all
    if (status == 5000)
      CHECK_THROWS_AS(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()), DeviceError);
    else
      CHECK_THROWS_AS(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()), Unsupported);
    CHECK_THROWS_WITH(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()),
                      Catch::Matchers::ContainsSubstring("nothing could be measured: implicit_gemm: "));
  }
}

TEST_CASE("cudnn: an algorithm that fails with the device ends the race") {
  MeasuringBackend on;
  on.fake.fail_status = 5000;
  on.fake.fail_call_of = "ConvolutionForward";
  on.fake.fail_algorithm = 3;
  const Spec spec = spec_of(on, measured_case);
  std::vector<char> buffer(1 << 20);
  CHECK_NOTHROW(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()));
  on.log.device.lost = true;
  CHECK_THROWS_AS(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()), DeviceError);
  CHECK_THROWS_WITH(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()),
                    Catch::Matchers::ContainsSubstring("the device is lost"));
}

TEST_CASE("cudnn: the later passes run a forward algorithm that can") {
  MeasuringBackend on;
  on.fake.fail_status = 4004;
  on.fake.fail_call_of = "ConvolutionForward";
  on.fake.fail_algorithm = 0;  // the rule's
  std::vector<char> buffer(1 << 20);
  const Choice taken = on.measure(spec_of(on, measured_case), {.measure = true}, buffer.data(), buffer.size()).choice;
  CHECK(taken.algorithm == std::array<std::string, 3>{"implicit_precomp_gemm", "algo_0", "algo_0"});
}

TEST_CASE("cudnn: an algorithm whose lowering finds no room takes no part") {
  MeasuringBackend on;
  on.fake.workspace_status[3] = 4004;  // direct
  Case inference = measured_case;
  inference.mode = Mode::inference;
  std::vector<char> buffer(1 << 20);
  on.measure(spec_of(on, inference), {.measure = true}, buffer.data(), buffer.size());
  CHECK_FALSE(refusal(on.seen.at(0), "direct").empty());
}

TEST_CASE("cudnn: what is named, not wanted or of one way only is not measured") {
  MeasuringBackend on;
  std::vector<char> buffer(1 << 20);
  const Choice named = {.algorithm = {"gemm", "", ""}, .measure = true};
  const Choice taken = on.measure(spec_of(on, measured_case, {.dtype = DType::f32, .wants = {false}}), named,
                                  buffer.data(), buffer.size())
                           .choice;
  CHECK(taken.algorithm[0] == "gemm");
  CHECK_FALSE(taken.algorithm[1].empty());
  CHECK(taken.algorithm[2].empty());
  CHECK(on.seen.size() == 1);
  Case inference = measured_case;
  inference.mode = Mode::inference;
  CHECK_FALSE(
      on.measure(spec_of(on, inference), {.measure = true}, buffer.data(), buffer.size()).choice.algorithm[0].empty());
  CHECK(on.seen.size() == 2);
  const Choice none = on.measure(spec_of(on, {"", Relu{}, {{1, 1, 1, 1}}}), {.measure = true}, nullptr, 0).choice;
  CHECK_FALSE(none.measure);
  CHECK(on.seen.size() == 2);
}

TEST_CASE("cudnn: where nothing fits the lent memory, that is said, with both sizes") {
  MeasuringBackend on;
  std::vector<char> buffer(256);
  const Spec spec = spec_of(on, measured_case);
  CHECK_THROWS_AS(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()), Unsupported);
  CHECK_THROWS_WITH(on.measure(spec, {.measure = true}, buffer.data(), buffer.size()),
                    Catch::Matchers::ContainsSubstring("256"));
}

TEST_CASE("cudnn: a plan that asks for measurement takes what was measured") {
  Graph graph("one");
  relu(conv(graph.input({1, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3}));
  Options options;
  options.choice.measure = true;
  options.tuner = make_tuner();
  for (const auto& [fast, name] : {std::pair{6, "winograd"}, {9, "implicit_precomp_gemm+fused"}}) {
    MeasuringBackend on;
    tell(on.log, one_fast(16, static_cast<std::size_t>(fast)));  // each by three calls, then each by one
    Plan plan(graph, on.backend, options);
    CHECK(plan.calls().at(0).algorithm == name);
  }
}

TEST_CASE("cudnn: where the library refuses every fused call, the race is among those of three, and says so") {
  for (const cudnn::Status status : {2000, 3000}) {
    MeasuringBackend on;
    on.fake.status["ConvolutionBiasActivationForward"] = status;
    Case inference = measured_case;
    inference.tail = {{Relu{}}};
    inference.mode = Mode::inference;
    std::vector<char> buffer(1 << 20);
    const Choice taken = on.measure(spec_of(on, inference), {.measure = true}, buffer.data(), buffer.size()).choice;
    CHECK(taken.algorithm[0] == "implicit_gemm");
    const std::vector<std::string> seen = words(on.seen.at(0));
    REQUIRE(seen.size() == 16);
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i].ends_with("+fused refused") == (i >= 8));
  }
}

TEST_CASE("cudnn: what was measured is kept in the choice cache, and measured no more by the same version") {
  const Folder folder;
  const std::string file = (folder / "choices.json").string();
  std::vector<char> buffer(1 << 20);
  const auto measured = [&](MeasuringBackend& on) {
    return on.measure(spec_of(on, measured_case), {.measure = true}, buffer.data(), buffer.size()).choice;
  };
  MeasuringBackend on(91900, file);
  tell(on.log, one_fast(8, 6));
  const Choice first = measured(on);
  CHECK(first.algorithm[0] == "winograd");
  MeasuringBackend again(91900, file);
  const Choice second = measured(again);
  CHECK(second.algorithm == first.algorithm);
  CHECK(again.seen.empty());
  MeasuringBackend other(90100, file);
  measured(other);
  CHECK_FALSE(other.seen.empty());
}
