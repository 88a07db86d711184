// What is said of rows that two variants ran in turns, on made-up times.

#include "race/comparison.h"

#include <algorithm>
#include <cmath>
#include <random>

#include "measure/samples.h"
#include "support/catch.h"

using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;
using Catch::Matchers::StartsWith;

namespace {

/// Six rounds around a time, with a spread of a few per mille.
std::vector<std::optional<Observation>> around(double seconds, const std::string& algorithm = {}, double MiB = 10) {
  std::vector<std::optional<Observation>> rounds;
  for (const double factor : {1.0, 1.001, 0.999, 1.002, 0.998, 1.0})
    rounds.push_back(Observation{factor * seconds, MiB, algorithm, {}});
  return rounds;
}

std::vector<std::optional<Observation>> failing(const std::string& failure) {
  return std::vector<std::optional<Observation>>(6, Observation{0, 0, {}, failure});
}

Difference of(const std::vector<Difference>& all, const std::string& row) {
  for (const Difference& d : all)
    if (d.row == row) return d;
  FAIL("no row " << row);
  return {};
}

Difference one(const std::vector<std::optional<Observation>>& first,
               const std::vector<std::optional<Observation>>& other, const std::string& row = "net/a/total/eigen") {
  return of(compare({{row, first}}, {{row, other}}), row);
}

std::string layer(const std::string& algorithm) { return "layer/net/conv1/forward/cudnn/" + algorithm + "/f32"; }

}  // namespace

TEST_CASE("the interval of a ratio is that of paired t quantiles") {
  // Logarithms of the ratios 1, 2, 4: mean log 2, deviation log 2; quantile 9.925 over the root of three.
  const auto ratio = log_ratio({1, 1, 1}, {1, 2, 4});
  REQUIRE(ratio);
  CHECK(ratio->mean == Approx(std::log(2.0)));
  CHECK(ratio->half_width == Approx(9.925 * std::log(2.0) / std::sqrt(3.0)));
  // Six pairs, 1.1 and 1 in turns: mean log(1.1) / 2, deviation log(1.1) sqrt(0.3), quantile 4.032.
  const auto six = log_ratio({1, 1, 1, 1, 1, 1}, {1.1, 1, 1.1, 1, 1.1, 1});
  REQUIRE(six);
  CHECK(six->mean == Approx(std::log(1.1) / 2));
  CHECK(six->half_width == Approx(4.032 * std::log(1.1) * std::sqrt(0.3 / 6)));
  CHECK_FALSE(log_ratio({1, 1}, {1, 1}));
  CHECK(log_ratio(std::vector<double>(40, 2.0), std::vector<double>(40, 1.0))->mean == Approx(-std::log(2.0)));
}

TEST_CASE("pairs that both got slower meanwhile have an exact ratio") {
  const auto ratio = log_ratio({1, 5, 2, 9}, {1.1, 5.5, 2.2, 9.9});
  REQUIRE(ratio);
  CHECK(ratio->mean == Approx(std::log(1.1)));
  CHECK(ratio->half_width < 1e-12);
}

TEST_CASE("slower and faster are said beyond the least difference, and with an interval that excludes 1") {
  CHECK(one(around(1), around(1)).verdict == Verdict::equal);
  CHECK(one(around(1), around(1.015)).verdict == Verdict::equal);
  CHECK(one(around(1), around(0.985)).verdict == Verdict::equal);
  const Difference slower = one(around(1), around(1.05));
  CHECK(slower.verdict == Verdict::slower);
  CHECK(slower.ratio == Approx(1.05));
  CHECK(slower.low <= slower.ratio);
  CHECK(slower.high >= slower.ratio);
  const Difference faster = one(around(1), around(0.95));
  CHECK(faster.verdict == Verdict::faster);
  CHECK(faster.label.empty());
  auto noisy = around(1.1);
  noisy[2]->seconds = 0.8;
  noisy[4]->seconds = 1.4;
  CHECK(one(around(1), noisy).verdict == Verdict::equal);
}

TEST_CASE("too few rounds with both decide nothing") {
  auto few = around(2);
  for (const std::size_t lost : {0, 1, 2, 3}) few[lost].reset();
  const Difference d = one(around(1), few);
  CHECK(d.verdict == Verdict::undecided);
  CHECK(d.ratio == Approx(2).epsilon(0.01));
  CHECK(d.seconds > 0);
}

TEST_CASE("a row of one variant only is undecided, and says so") {
  const auto gone = compare({{"net/a", around(1)}}, {});
  CHECK(gone.at(0).verdict == Verdict::undecided);
  CHECK_THAT(gone.at(0).evidence, StartsWith("no such row here"));
  CHECK_THAT(compare({}, {{"net/a", around(1)}}).at(0).evidence, StartsWith("no such row in the first"));
}

TEST_CASE("failures are verdicts with their text") {
  const Difference fails = one(around(1), failing("Unsupported: no such thing"));
  CHECK(fails.verdict == Verdict::fails);
  CHECK(fails.label.empty());
  CHECK_THAT(fails.evidence, StartsWith("Unsupported"));
  CHECK(one(around(1), failing("OutOfMemory: 3 GiB wanted")).label == "memory");
  CHECK(one(failing("DeviceError: x"), around(1)).verdict == Verdict::no_longer_fails);
  CHECK(one(failing("a"), failing("b")).verdict == Verdict::fails_in_both);
}

TEST_CASE("a round that failed among others that did not is left out") {
  auto once = around(1.05);
  once[0] = Observation{0, 0, {}, "DeviceError: once"};
  CHECK(one(around(1), once).verdict == Verdict::slower);
}

TEST_CASE("pick: another algorithm was picked, and the fastest got no slower") {
  const Observations first = {
      {layer("default"), around(1, "winograd")}, {layer("winograd"), around(1)}, {layer("gemm"), around(2)}};
  const Observations other = {
      {layer("default"), around(2, "gemm")}, {layer("winograd"), around(1)}, {layer("gemm"), around(2)}};
  const auto all = compare(first, other);
  const Difference d = of(all, layer("default"));
  CHECK(d.verdict == Verdict::slower);
  CHECK(d.label == "pick");
  CHECK_THAT(d.evidence, ContainsSubstring("picked gemm instead of winograd") && ContainsSubstring("by winograd"));
  CHECK(of(all, layer("gemm")).label.empty());
}

TEST_CASE("kernel: the fastest algorithm got slower, whichever is picked") {
  const Observations first = {
      {layer("default"), around(1, "winograd")}, {layer("winograd"), around(1)}, {layer("gemm"), around(2)}};
  Observations other = {
      {layer("default"), around(1.5, "winograd")}, {layer("winograd"), around(1.5)}, {layer("gemm"), around(2)}};
  auto all = compare(first, other);
  CHECK(of(all, layer("default")).label == "kernel");
  CHECK(of(all, layer("winograd")).label == "kernel");
  CHECK_THAT(of(all, layer("winograd")).evidence, ContainsSubstring("by winograd"));
  other[layer("default")] = around(2, "gemm");
  all = compare(first, other);
  CHECK(of(all, layer("default")).label == "kernel");
  CHECK_THAT(of(all, layer("default")).evidence, ContainsSubstring("picked gemm instead of winograd"));
  CHECK_THAT(of(all, layer("default")).evidence, ContainsSubstring("1500.000 ms by winograd"));
}

TEST_CASE("kernel: the same pick got slower where nothing else is known") {
  CHECK(one(around(1, "gemm"), around(1.5, "gemm"), layer("default")).label == "kernel");
}

TEST_CASE("algorithms of another layer or pass are no evidence") {
  const std::string elsewhere = "layer/net/conv1/backward_data/cudnn/winograd/f32";
  const Observations first = {{layer("default"), around(1, "winograd")}, {elsewhere, around(0.1)}};
  const Observations other = {{layer("default"), around(2, "gemm")}, {elsewhere, around(0.1)}};
  CHECK(of(compare(first, other), layer("default")).label == "kernel");
}

TEST_CASE("memory: more is needed, whatever the time") {
  const Difference d = one(around(1, "", 100), around(1, "", 102));
  CHECK(d.verdict == Verdict::equal);
  CHECK(d.label == "memory");
  CHECK_THAT(d.evidence, ContainsSubstring("100.0 -> 102.0 MiB"));
  CHECK(one(around(1, "", 100), around(1, "", 100.5)).label.empty());
  CHECK(one(around(1, "gemm", 1), around(2, "gemm", 9), layer("gemm")).label == "kernel, memory");
}

TEST_CASE("first call: what got slower is set-up") {
  CHECK(one(around(1), around(2), "setup/a/plan/eigen").label == "first call");
  CHECK(one(around(2), around(1), "setup/a/plan/eigen").label.empty());
}

TEST_CASE("layers: a network names those of its layers that got slower, the dearest first") {
  const std::string net = "net/net/total/cudnn/f32", other_net = "layer/other/conv1/forward/cudnn/gemm/f32";
  const std::string dear = "layer/net/conv2/forward/cudnn/gemm/f32";
  const Observations first = {{net, around(10)}, {layer("gemm"), around(1)}, {dear, around(3)}, {other_net, around(1)}};
  const Observations other = {
      {net, around(12)}, {layer("gemm"), around(1.5)}, {dear, around(4.5)}, {other_net, around(2)}};
  const Difference d = of(compare(first, other), net);
  CHECK(d.label == "layers");
  CHECK_THAT(d.evidence, !ContainsSubstring("layer/other"));
  CHECK(d.evidence.find(dear) < d.evidence.find(layer("gemm")));
  CHECK(d.evidence.find(layer("gemm")) != std::string::npos);
  CHECK_THAT(d.evidence, ContainsSubstring("gemm/f32 (+1500.000 ms, kernel)"));
  const Difference alone = one(around(10), around(12), net);
  CHECK(alone.label == "kernel");
  CHECK_THAT(alone.evidence, ContainsSubstring("let the filter pick layer/ rows"));
}

TEST_CASE("layers: rows of another backend, type, layout, batch or pass are no evidence against a network") {
  const std::string tail = "f32/nchw/batch:16";
  const auto labelled = [&](const std::string& net, const std::string& slower) {
    const Observations first = {{net, around(10)}, {slower, around(1)}},
                       other = {{net, around(12)}, {slower, around(2)}};
    return of(compare(first, other), net).label;
  };
  const std::string backward = "net/n/backward/cudnn/" + tail, forward = "net/n/forward/cudnn/" + tail;
  CHECK(labelled(backward, "layer/n/c/backward_data/cudnn/gemm/" + tail) == "layers");
  CHECK(labelled(backward, "layer/n/c/backward_params/cudnn/gemm/" + tail) == "layers");
  CHECK(labelled(backward, "layer/n/c/forward/cudnn/gemm/" + tail) == "kernel");
  CHECK(labelled(forward, "layer/n/c/forward/cudnn/gemm/" + tail) == "layers");
  CHECK(labelled(forward, "layer/n/c/backward_data/cudnn/gemm/" + tail) == "kernel");
  CHECK(labelled("net/n/inference/cudnn/" + tail, "layer/n/c/forward/cudnn/gemm/" + tail) == "layers");
  CHECK(labelled("net/n/total/cudnn/" + tail, "layer/n/c/backward_data/cudnn/gemm/" + tail) == "layers");
  CHECK(labelled(forward, "layer/n/c/forward/eigen/gemm/" + tail) == "kernel");
  for (const char* elsewhere :
       {"tf32/nchw/batch:16", "f32/nhwc/batch:16", "f32/nchw/batch:1", "f32/nchw/batch:16/image:64"})
    CHECK(labelled(forward, std::string("layer/n/c/forward/cudnn/gemm/") + elsewhere) == "kernel");
  // What only a whole network's plan has is no part of a layer's name.
  for (const char* more :
       {"/graph", "/recompute/unfused", "/softmax:1/input_gradient:0/accumulate:1", "/measured", "/choices"})
    CHECK(labelled(forward + more, "layer/n/c/forward/cudnn/gemm/" + tail) == "layers");
  CHECK(labelled(forward + "/unfused/deterministic", "layer/n/c/forward/cudnn/gemm/" + tail + "/deterministic") ==
        "layers");
  CHECK(labelled(forward + "/deterministic", "layer/n/c/forward/cudnn/gemm/" + tail) == "kernel");
}

TEST_CASE("layers: of two backends each network names its own, with the label that the row has") {
  const auto row = [](const char* backend, const char* algorithm) {
    return "layer/n/conv1/forward/" + std::string(backend) + "/" + algorithm + "/f32";
  };
  const std::string eigen = "net/n/forward/eigen/f32", cudnn = "net/n/forward/cudnn/f32";
  const Observations first = {{eigen, around(10)},
                              {cudnn, around(10)},
                              {row("eigen", "gemm"), around(1)},
                              {row("cudnn", "default"), around(1, "winograd")},
                              {row("cudnn", "winograd"), around(1)},
                              {row("cudnn", "gemm"), around(2)}};
  const Observations other = {{eigen, around(12)},
                              {cudnn, around(12)},
                              {row("eigen", "gemm"), around(3)},
                              {row("cudnn", "default"), around(2, "gemm")},
                              {row("cudnn", "winograd"), around(1)},
                              {row("cudnn", "gemm"), around(5)}};
  const auto all = compare(first, other);
  CHECK_THAT(of(all, eigen).evidence, ContainsSubstring(row("eigen", "gemm") + " (+2000.000 ms, kernel)"));
  CHECK_THAT(of(all, eigen).evidence, !ContainsSubstring("/cudnn/"));
  CHECK_THAT(of(all, cudnn).evidence, ContainsSubstring(row("cudnn", "default") + " (+1000.000 ms, pick)"));
  CHECK_THAT(of(all, cudnn).evidence, !ContainsSubstring("/eigen/"));
  CHECK_THAT(of(all, cudnn).evidence, !ContainsSubstring("/gemm/"));  // dearer, and not what the network takes
}

TEST_CASE("layers: a network whose layers ran and held is not put down to them") {
  const std::string net = "net/net/forward/cudnn/f32";
  const Observations first = {{net, around(10)}, {layer("default"), around(1)}, {layer("fft"), around(1)}};
  const Observations other = {{net, around(12)}, {layer("default"), around(1)}, {layer("fft"), around(9)}};
  const Difference d = of(compare(first, other), net);
  CHECK(d.label == "kernel");
  CHECK_THAT(d.evidence, ContainsSubstring("none of 1 rows of its layers got slower"));
}

namespace {

/// Rounds of one row: each of `passes` passes is disturbed by a little, and one in ten by a lot, which only ever adds.
/// `of_passes` makes of them what a round has to say.
template <class OfPasses>
std::vector<std::optional<Observation>> disturbed(std::mt19937& random, double seconds, OfPasses&& of_passes) {
  std::exponential_distribution<double> little(1 / 0.02), lot(1 / 0.5);
  std::bernoulli_distribution hit(0.1);
  std::normal_distribution<double> process(0, 0.005);  // what differs from one process to the next: addresses, pages
  std::vector<std::optional<Observation>> rounds;
  for (int round = 0; round < 6; ++round) {
    const double base = seconds * std::exp(process(random));
    std::vector<double> passes;
    for (int pass = 0; pass < 9; ++pass)
      passes.push_back(base * (1 + little(random) + (hit(random) ? lot(random) : 0)));
    rounds.push_back(Observation{of_passes(passes), 10, {}, {}});
  }
  return rounds;
}

double least(const std::vector<double>& x) { return *std::min_element(x.begin(), x.end()); }

template <class OfPasses>
int slower_in_1000(double ratio, OfPasses&& of_passes) {
  std::mt19937 random(7);
  int found = 0;
  for (int trial = 0; trial < 1000; ++trial) {
    const auto first = disturbed(random, 1, of_passes);
    if (one(first, disturbed(random, ratio, of_passes)).verdict == Verdict::slower) ++found;
  }
  return found;
}

}  // namespace

TEST_CASE("with passes that others disturb, equal is called equal and 5 % are found by the least of a round") {
  CHECK(slower_in_1000(1, least) <= 5);
  CHECK(slower_in_1000(1.05, least) >= 950);
  CHECK(slower_in_1000(1.05, median) < slower_in_1000(1.05, least));
}

TEST_CASE("of many rows of which one is slower by 5 %, that one is named") {
  std::mt19937 random(11);
  Observations first, other;
  const std::string slow = "layer/net/conv37/forward/eigen/direct/f32";
  for (int i = 0; i < 100; ++i) {
    const std::string row = "layer/net/conv" + std::to_string(i) + "/forward/eigen/direct/f32";
    first[row] = disturbed(random, 1e-3, least);
    other[row] = disturbed(random, row == slow ? 1.05e-3 : 1e-3, least);
  }
  int equal = 0;
  for (const Difference& d : compare(first, other)) {
    equal += d.verdict == Verdict::equal ? 1 : 0;
    if (d.verdict == Verdict::slower) CHECK(d.row == slow);
  }
  CHECK(of(compare(first, other), slow).label == "kernel");
  CHECK(equal >= 95);
}
