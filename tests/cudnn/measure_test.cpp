// Measuring algorithms on a fake cuDNN, with a clock that the test sets.

#include "lamina/plan.h"
#include "lamina/tuning.h"
#include "lib/tuning/measure_in_turns.h"
#include "tests/cudnn/bound.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const Case measured_case = {"", Conv{.channels = 4, .kernel = 3}, {{1, 2, 5, 5}}};
const Case in_inference = {"", measured_case.op, measured_case.x, {}, Mode::inference};

/// A fake backend that records its measurements.
struct MeasuringBackend : FakeBackend {
  explicit MeasuringBackend(std::size_t version = 91900, const std::filesystem::path& file = {})
      : FakeBackend(version), cache(file.empty() ? std::nullopt : std::optional<ChoiceCache>(file)) {}

  std::optional<ChoiceCache> cache;
  std::vector<LayerTuning> seen;
};

/// Measures a unit with `bytes` of lent memory. Returns the resulting choice.
Choice measured(MeasuringBackend& on, const Spec& spec, const Choice& choice = {.measure = true},
                std::size_t bytes = 1 << 20) {
  std::vector<char> buffer(bytes);
  const auto race = [&] {
    return measure_in_turns(on.backend, spec, choice, buffer.data(), bytes,
                            [&](LayerTuning its) { on.seen.push_back(std::move(its)); });
  };
  return (on.cache ? on.cache->find_or_measure(on.backend, spec, choice, race) : race()).choice;
}

/// The seconds of one algorithm in each round, 0 to 9. Round 0 warms up.
using Told = std::function<double(int round)>;

Told always(double seconds) {
  return [=](int) { return seconds; };
}

/// Sets the clock's times for a race of these algorithms, in the order of the race. The times must be within a factor
/// of 2.
void tell(MachineLog& log, const std::vector<Told>& algorithms) {
  const std::size_t count = algorithms.size();
  for (std::size_t round = 0; round <= RaceRules().rounds; ++round)
    for (std::size_t k = 0; k < count; ++k)
      log.device.seconds.push_back(algorithms[round % 2 == 0 ? k : count - 1 - k](static_cast<int>(round)));
}

/// The times of `count` algorithms: the fast algorithm takes 2 ms, and each other algorithm 3 ms.
std::vector<Told> one_fast(std::size_t count, std::size_t fast) {
  std::vector<Told> told(count, always(3e-3));
  told[fast] = always(2e-3);
  return told;
}

/// A text for each algorithm, the default first: "a", "a taken", "a tied" or "a refused".
std::vector<std::string> words(const LayerTuning& tuning) {
  std::vector<std::string> all;
  for (const LayerTuning::Candidate& one : tuning.candidates)
    all.push_back(one.algorithm + (one.refused.empty() ? "" : " refused"));
  for (const std::size_t i : tuning.picked.ties) all[i] += " tied";
  all[*tuning.picked.best] += " taken";
  return all;
}

/// The reason why the algorithm was refused; empty: it was not refused.
std::string refusal(const LayerTuning& tuning, const std::string& algorithm) {
  for (const LayerTuning::Candidate& one : tuning.candidates)
    if (one.algorithm == algorithm) return one.refused;
  return "no such algorithm";
}

}  // namespace

TEST_CASE("cudnn: measuring runs algorithms in turns in lent memory, and takes the fastest of each pass") {
  MeasuringBackend on;
  const Spec spec = spec_of(on, measured_case, {.dtype = DType::f32, .adds = true});
  on.fake.workspace_status[2] = 3000;                // refuses gemm in forward, and fft in both gradients
  tell(on.log, one_fast(7, 4));                      // forward: fft_tiling is the fifth that runs
  tell(on.log, one_fast(5, 1));                      // params: algo_1
  tell(on.log, std::vector<Told>(5, always(3e-3)));  // data: all tied, so the default algo_0 stays
  const Choice taken = measured(on, spec);
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
  CHECK_THAT(forward.candidates[2].refused, ContainsSubstring("NOT_SUPPORTED"));
  CHECK(words(on.seen[2]) == std::vector<std::string>{"algo_0 taken", "algo_1 tied", "fft refused", "fft_tiling tied",
                                                      "winograd tied", "winograd_nonfused tied"});

  int adding = 0;
  for (const std::string& call : on.fake.calls) adding += call.find("ConvolutionBackwardData(") == 0 ? 1 : 0;
  CHECK(adding == 5 * (1 + static_cast<int>(RaceRules().rounds)));
  CHECK(on.log.device.allocations == 0);
}

TEST_CASE("cudnn: the fastest algorithm wins the race in spite of one slow round") {
  MeasuringBackend on;
  on.fake.answers[Pass::forward] = {result(0), result(1)};
  for (int other = 2; other < 8; ++other) on.fake.workspace_status[other] = 3000;
  on.fake.workspace = {{0, 0}, {1, 1000}};
  tell(on.log, {always(4.8e-3), [](int round) { return round == 4 ? 5e-3 : 1e-3; }});
  const Choice taken = measured(on, spec_of(on, in_inference));
  CHECK(taken.algorithm[0] == "implicit_precomp_gemm");
  CHECK(on.seen.at(0).picked.ties.empty());
}

TEST_CASE("cudnn: a race goes on without an algorithm that fails in a run, even if it is the default") {
  for (const cudnn::Status status : {4004, 3000, 5000}) {
    MeasuringBackend on;
    on.fake.fail_status = status;
    on.fake.fail_call_of = "ConvolutionForward";
    on.fake.fail_algorithm = 0;  // the default algorithm
    const Spec spec = spec_of(on, in_inference);
    const Choice taken = measured(on, spec);
    CHECK(taken.algorithm[0] == "implicit_precomp_gemm");
    const LayerTuning& seen = on.seen.at(0);
    CHECK(seen.candidates.front().by_rule);
    CHECK_THAT(refusal(seen, "implicit_gemm"), ContainsSubstring(std::to_string(status)));

    on.fake.status["ConvolutionForward"] = status;  // every algorithm fails
    const Says said("nothing could be measured: implicit_gemm: ");
    if (status == 5000)
      CHECK_THROWS_MATCHES(measured(on, spec), DeviceError, said);
    else
      CHECK_THROWS_MATCHES(measured(on, spec), Unsupported, said);
  }
}

TEST_CASE("cudnn: an algorithm that makes the device fail ends the race") {
  MeasuringBackend on;
  on.fake.fail_status = 5000;
  on.fake.fail_call_of = "ConvolutionForward";
  on.fake.fail_algorithm = 3;
  const Spec spec = spec_of(on, measured_case);
  CHECK_NOTHROW(measured(on, spec));
  on.log.device.lost = true;
  CHECK_THROWS_MATCHES(measured(on, spec), DeviceError, Says("the device is lost"));
}

TEST_CASE("cudnn: the races of backward passes run a forward algorithm that does not fail") {
  MeasuringBackend on;
  on.fake.fail_status = 4004;
  on.fake.fail_call_of = "ConvolutionForward";
  on.fake.fail_algorithm = 0;  // the default algorithm
  const Choice taken = measured(on, spec_of(on, measured_case));
  CHECK(taken.algorithm == std::array<std::string, 3>{"implicit_precomp_gemm", "algo_0", "algo_0"});
}

TEST_CASE("cudnn: an algorithm that runs out of memory in lowering takes no part in the race") {
  MeasuringBackend on;
  on.fake.workspace_status[3] = 4004;  // direct is out of memory
  measured(on, spec_of(on, in_inference));
  CHECK_FALSE(refusal(on.seen.at(0), "direct").empty());
}

TEST_CASE("cudnn: a pass with a named algorithm, an unwanted pass and a pass with one algorithm are not measured") {
  MeasuringBackend on;
  const Choice named = {.algorithm = {"gemm", "", ""}, .measure = true};
  const Choice taken = measured(on, spec_of(on, measured_case, {.dtype = DType::f32, .wants = {false}}), named);
  CHECK(taken.algorithm[0] == "gemm");
  CHECK_FALSE(taken.algorithm[1].empty());
  CHECK(taken.algorithm[2].empty());
  CHECK(on.seen.size() == 1);
  CHECK_FALSE(measured(on, spec_of(on, in_inference)).algorithm[0].empty());
  CHECK(on.seen.size() == 2);
  CHECK_FALSE(measured(on, spec_of(on, {"", Relu{}, {{1, 1, 1, 1}}}), {.measure = true}, 0).measure);
  CHECK(on.seen.size() == 2);
}

TEST_CASE("cudnn: if nothing fits into the lent memory, the error says so and has the size") {
  MeasuringBackend on;
  CHECK_THROWS_MATCHES(measured(on, spec_of(on, measured_case), {.measure = true}, 256), Unsupported, Says("256"));
}

TEST_CASE("cudnn: a plan with measured choices takes the fastest algorithm") {
  Graph graph("one");
  relu(conv(graph.input({1, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3}));
  const Options options{.choice = {.measure = true}, .tuner = make_tuner()};
  for (const auto& [fast, name] : {std::pair{6, "winograd"}, {9, "implicit_precomp_gemm+fused"}}) {
    MeasuringBackend on;
    tell(on.log, one_fast(16, static_cast<std::size_t>(fast)));  // the algorithms by three calls, then the fused ones
    Plan plan(graph, on.backend, options);
    CHECK(plan.calls().at(0).algorithm == name);
  }
}

TEST_CASE("cudnn: if the library refuses every fused call, the race goes on with algorithms of three calls") {
  for (const cudnn::Status status : {2000, 3000}) {
    MeasuringBackend on;
    on.fake.status["ConvolutionBiasActivationForward"] = status;
    Case with_relu = in_inference;
    with_relu.tail = {{Relu{}}};
    const Choice taken = measured(on, spec_of(on, with_relu));
    CHECK(taken.algorithm[0] == "implicit_gemm");
    const std::vector<std::string> seen = words(on.seen.at(0));
    REQUIRE(seen.size() == 16);
    for (std::size_t i = 0; i < seen.size(); ++i) CHECK(seen[i].ends_with("+fused refused") == (i >= 8));
  }
}

TEST_CASE("cudnn: measured choices are kept in the choice cache, and the same version does not measure again") {
  const Folder folder;
  const std::string file = (folder / "choices.json").string();
  const auto of_case = [](MeasuringBackend& on) { return measured(on, spec_of(on, measured_case)); };
  MeasuringBackend on(91900, file);
  tell(on.log, one_fast(8, 6));
  const Choice first = of_case(on);
  CHECK(first.algorithm[0] == "winograd");
  MeasuringBackend again(91900, file);
  const Choice second = of_case(again);
  CHECK(second.algorithm == first.algorithm);
  CHECK(again.seen.empty());
  MeasuringBackend other(90100, file);
  of_case(other);
  CHECK_FALSE(other.seen.empty());
}
