// Algorithms measured on a fake, by a clock that shows what it is told.

#include "cudnn/bound.h"
#include "io/files.h"
#include "lamina/error.h"
#include "lamina/plan.h"
#include "support/catch.h"

using namespace lamina;
using namespace lamina::test;
using cudnn::Timing;

namespace {

constexpr std::size_t samples = 9;

const Case plain = {"", Conv{.channels = 4, .kernel = 3}, {{1, 2, 5, 5}}};

/// Samples of one algorithm: the middle one, and how far the others lie from it.
void tell(MachineLog& log, double seconds, double spread) {
  for (std::size_t i = 0; i < samples; ++i)
    log.device.seconds.push_back(seconds + spread * (static_cast<double>(i) - 4) / 4);
}

std::vector<std::string> order(std::vector<Timing> timings) {
  cudnn::rank(timings);
  std::vector<std::string> names;
  for (const Timing& timing : timings) names.push_back(timing.algorithm + (timing.tied ? " tied" : ""));
  return names;
}

}  // namespace

TEST_CASE("cudnn: of what is tied with the fastest, the least workspace leads") {
  const Timing a{.algorithm = "a", .median = 10, .least = 9, .most = 11, .workspace_bytes = 500};
  const Timing b{.algorithm = "b", .median = 11, .least = 10.5, .most = 12, .workspace_bytes = 100};
  const Timing c{.algorithm = "c", .median = 12, .least = 11.5, .most = 13, .workspace_bytes = 0};
  const Timing d{.algorithm = "d", .refused = "no"};
  CHECK(order({d, c, b, a}) == std::vector<std::string>{"b tied", "a tied", "c", "d"});
  CHECK(order({c, d}) == std::vector<std::string>{"c", "d"});
  CHECK(order({d}) == std::vector<std::string>{"d"});
  CHECK(order({}).empty());
  Timing same = a;
  same.algorithm = "same";
  CHECK(order({a, same}) == std::vector<std::string>{"a tied", "same tied"});
}

TEST_CASE("cudnn: measuring names the fastest of each pass, in the memory that is lent, by several samples") {
  FakeBackend on;
  const Spec spec = spec_of(on, plain, {.dtype = DType::f32, .adds = true});
  on.fake.workspace_status[2] = 3000;                                 // gemm, and fft in both gradients
  for (int i = 0; i < 7; ++i) tell(on.log, i == 4 ? 1 : 5 + i, 0.1);  // forward: the fifth that runs is fft_tiling
  for (int i = 0; i < 5; ++i) tell(on.log, i == 1 ? 2 : 9, 0.1);      // params: algo_1
  for (int i = 0; i < 5; ++i) tell(on.log, 3, 0.1);                   // data: all tied, algo_0 needs least
  std::vector<char> lent(1 << 20);
  const Choice taken = on.backend.measure(spec, {.measure = true}, lent.data(), lent.size());
  CHECK(taken.algorithm == std::array<std::string, 3>{"fft_tiling", "algo_1", "algo_0"});
  CHECK_FALSE(taken.measure);
  CHECK(on.log.device.seconds.empty());

  REQUIRE(on.backend.measured().size() == 3);
  const cudnn::Measured& forward = on.backend.measured()[0];
  CHECK(forward.pass == Pass::forward);
  CHECK(forward.timings.size() == 8);
  CHECK(forward.timings[0].median == 1);
  CHECK(forward.timings[0].least == 0.9);
  CHECK(forward.timings.back().algorithm == "gemm");
  CHECK(forward.timings.back().refused.find("NOT_SUPPORTED") != std::string::npos);
  CHECK_FALSE(forward.timings[0].tied);
  CHECK(on.backend.measured()[2].timings[0].tied);

  int adding = 0;
  for (const std::string& call : on.fake.calls) adding += call.find("ConvolutionBackwardData(") == 0 ? 1 : 0;
  CHECK(adding == 5 * (2 + static_cast<int>(samples)));
  CHECK(on.log.device.allocations == 0);
}

TEST_CASE("cudnn: what is named, not wanted or of one way only is not measured") {
  FakeBackend on;
  std::vector<char> lent(1 << 20);
  const Choice named = {.algorithm = {"gemm", "", ""}, .measure = true};
  const Choice taken =
      on.backend.measure(spec_of(on, plain, {.dtype = DType::f32, .wants = {false}}), named, lent.data(), lent.size());
  CHECK(taken.algorithm[0] == "gemm");
  CHECK_FALSE(taken.algorithm[1].empty());
  CHECK(taken.algorithm[2].empty());
  CHECK(on.backend.measured().size() == 1);
  Case inference = plain;
  inference.mode = Mode::inference;
  CHECK_FALSE(
      on.backend.measure(spec_of(on, inference), {.measure = true}, lent.data(), lent.size()).algorithm[0].empty());
  CHECK(on.backend.measured().size() == 2);
  const Choice none = on.backend.measure(spec_of(on, {"", Relu{}, {{1, 1, 1, 1}}}), {.measure = true}, nullptr, 0);
  CHECK_FALSE(none.measure);
  CHECK(on.backend.measured().size() == 2);
}

TEST_CASE("cudnn: where nothing fits the lent memory, that is said, with both sizes") {
  FakeBackend on;
  std::vector<char> lent(256);
  const Spec spec = spec_of(on, plain);
  CHECK_THROWS_AS(on.backend.measure(spec, {.measure = true}, lent.data(), lent.size()), Unsupported);
  CHECK_THROWS_WITH(on.backend.measure(spec, {.measure = true}, lent.data(), lent.size()),
                    Catch::Matchers::ContainsSubstring("of which 256 are lent"));
}

TEST_CASE("cudnn: a plan that asks for measurement takes what was measured") {
  Graph graph("one");
  relu(conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3}));
  FakeBackend on;
  for (int i = 0; i < 8; ++i) tell(on.log, i == 6 ? 1 : 5, 0.1);
  Options options;
  options.choice.measure = true;
  Plan plan(graph, on.backend, options);
  CHECK(plan.calls().at(0).algorithm == "winograd");
}

TEST_CASE("cudnn: what was measured is kept in the choice cache, and measured no more by the same version") {
  const Folder folder;
  const std::string file = (folder / "choices.json").string();
  std::vector<char> lent(1 << 20);
  const auto measured = [&](FakeBackend& on) {
    return on.backend.measure(spec_of(on, plain), {.measure = true}, lent.data(), lent.size());
  };
  FakeBackend on(91900, file);
  for (int i = 0; i < 8; ++i) tell(on.log, i == 6 ? 1 : 5, 0.1);
  const Choice first = measured(on);
  CHECK(first.algorithm[0] == "winograd");
  FakeBackend again(91900, file);
  const Choice second = measured(again);
  CHECK(second.algorithm == first.algorithm);
  CHECK_FALSE(second.measure);
  CHECK(again.backend.measured().empty());
  FakeBackend other(90100, file);
  measured(other);
  CHECK_FALSE(other.backend.measured().empty());
}
