// Layers are measured with every algorithm, on backends with known errors, changing bits, refusals and delays.

#include "bench/tasks/frontier.h"

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "bench/measure/layers.h"
#include "bench/rows/rows.h"
#include "lamina/error.h"
#include "tests/bench/doubles/odd_backend.h"
#include "tests/bench/ended.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;
using lamina::test::Odd;

namespace {

Tensor result_of(const Args& args, Pass pass) {
  return pass == Pass::forward ? args.y : pass == Pass::backward_data ? args.dx[0] : args.dw[0];
}

void scale(const Tensor& tensor, double factor) {
  for (std::int64_t i = 0; i < tensor.shape.count(); ++i)
    tensor.as<float>()[i] = static_cast<float>(tensor.as<float>()[i] * factor);
}

/// A 1x1 convolution of one channel to two. Each output is one product, so its relative error is also its error
/// relative to the terms.
Graph one_product() {
  Graph graph("one_product");
  const Value x = graph.input({1, 1, 5, 5}, "x0");
  conv(x, "c", {.channels = 2, .kernel = 1, .bias = false});
  return graph;
}

LayerFacts facts_of(Backend& backend, const Graph& graph, Pass pass, const std::string& algorithm) {
  const Config c{"alexnet", "eigen"};
  return LayerRun(backend, graph, layer_options(c, graph.nodes().back(), pass, algorithm, {}), pass,
                  std::make_shared<std::optional<Reference>>())
      .facts();
}

constexpr Pass passes[] = {Pass::forward, Pass::backward_data, Pass::backward_params};

/// Small networks on an Odd backend under the name of eigen.
struct Shop {
  Session session;
  Odd* odd;

  explicit Shop(PlanningSettings options = {}, Backend& inner = test::oracle())
      : session((options.configs.batches = {2}, options.net.width_divisor = 8, options)) {
    auto made = std::make_unique<Odd>(inner);
    odd = made.get();
    session.backends.put("eigen", std::move(made));
  }
  static Config config() { return {"cifar10_cnn", "eigen", DType::f32, Layout::nchw, 2}; }
  Frontier frontier(
      std::size_t rounds = 3, const std::function<void()>& at_each_line = [] {}) {
    return make_frontier(session, config(), {.race = {.rounds = rounds}}, [&](const std::string&) { at_each_line(); });
  }
};

const LayerTuning::Candidate& find(const FrontierLine& line, const std::string& algorithm) {
  for (const LayerTuning::Candidate& one : line.tuning.candidates)
    if (one.algorithm == algorithm) return one;
  FAIL("no " << algorithm << " for " << line.node);
  return line.tuning.candidates.front();
}

}  // namespace

TEST_CASE("an error of 1/1000 is measured as 1/1000, and no error as 0") {
  Odd odd;
  for (const Pass pass : passes) {
    CAPTURE(to_string(pass));
    odd.after = [pass](const Args& args) { scale(result_of(args, pass), 1 + 1e-3); };
    const LayerFacts wrong = facts_of(odd, one_product(), pass, "odd");
    CHECK(wrong.error->of_largest == Approx(1e-3).epsilon(1e-3));
    if (pass == Pass::forward) CHECK(wrong.error->of_terms == Approx(1e-3).epsilon(1e-3));
    CHECK(wrong.error->of_terms > 1e-4);
    CHECK(wrong.error->of_terms < 1.001e-3);
    const LayerFacts right = facts_of(odd, one_product(), pass, "direct");
    CHECK(right.error->of_terms < 1e-7);
    CHECK(right.error->of_terms <= right.call.max_error);
  }
}

TEST_CASE("a row's note names the algorithms that are tied with the row's algorithm") {
  LayerFacts facts;
  CHECK(to_string(facts) == "strict, deterministic, bit-identical in 0 runs");
  facts.call.tied = {"direct", "gemm"};
  CHECK(to_string(facts) == "strict, deterministic, bit-identical in 0 runs, tied with direct, gemm");
}

TEST_CASE("results whose bits change from run to run are told from stable results") {
  Odd odd;
  for (const Pass pass : passes) {
    CAPTURE(to_string(pass));
    CHECK(facts_of(odd, one_product(), pass, "odd").same_bits);
    odd.after = [pass, run = 0](const Args& args) mutable {
      // Changes the last bit of the last number in every third run.
      const Tensor tensor = result_of(args, pass);
      float& last = tensor.as<float>()[tensor.shape.count() - 1];
      if (++run % 3 == 0) last = std::nextafter(last, 2.0F);
    };
    const LayerFacts facts = facts_of(odd, one_product(), pass, "odd");
    CHECK_FALSE(facts.same_bits);
    CHECK(facts.call.deterministic);  // as the backend declares
    CHECK(facts.runs_compared >= 3);
    odd.after = [](const Args&) {};
  }
}

TEST_CASE("an algorithm that runs out of memory is refused with the reason, and the frontier goes on") {
  for (const int room : {0, 1, 2, 3, 4, 5, 6}) {
    CAPTURE(room);
    Shop shop;
    int run = 0;  // runs of all plans of a line: a new plan also finds no room
    shop.odd->after = [room, &run](const Args&) {
      if (++run > room) throw OutOfMemory("no room");
    };
    int odd = 0;
    for (const FrontierLine& line : shop.frontier(7, [&run] { run = 0; }).lines)
      for (const LayerTuning::Candidate& tried : line.tuning.candidates) {
        if (tried.algorithm != "odd") {
          CHECK(tried.ran());
          continue;
        }
        if (tried.ran() && !tried.measured.finished) continue;  // a busy machine made it so slow that it left the race
        ++odd;
        CHECK_FALSE(tried.ran());
        CHECK(tried.refused == "no room");
        CHECK_FALSE(tried.unsupported);
      }
    CHECK(odd > 0);
  }
  Shop shop;
  shop.odd->no_room_by_rule = true;  // then the rule has no candidate
  for (const FrontierLine& line : shop.frontier(1).lines)
    for (const LayerTuning::Candidate& tried : line.tuning.candidates) CHECK_FALSE(tried.by_rule);
}

TEST_CASE("an algorithm that some layers support has rows for all layers, and unsupported rows say why") {
  Shop shop;
  shop.odd->only_3x3 = true;
  const Config c{"resnet50", "eigen", DType::f32, Layout::nchw, 1};
  int refused = 0, run = 0;
  std::set<std::string> names;
  for (const Row& row : layer_rows(shop.session, {}, c)) {
    CHECK(names.insert(row.name).second);
    if (row.key.value("algorithm", "") != "odd") continue;
    CAPTURE(row.name);
    if (row.key["layer"] == "layer1.0.conv1") {
      ++refused;
      CHECK_THROWS_AS(row.group->open(), Unsupported);
      CHECK_THROWS_WITH(row.group->open(), ContainsSubstring("needs a 3x3 window"));
    }
    if (row.key["layer"] == "layer1.0.conv2") ++run;
  }
  CHECK(refused == 3);
  CHECK(run == 3);
}

TEST_CASE("a layer's row has its workspace, determinism and error") {
  Shop shop;
  shop.odd->workspace = 3 << 20;
  shop.odd->deterministic = false;
  for (const Row& row : layer_rows(shop.session, {}, Shop::config())) {
    if (row.key.value("algorithm", "") != "odd") continue;
    const auto measurement = row.group->open();
    const std::map<std::string, double> counters = measurement->counters();
    CAPTURE(row.name);
    CHECK(counters.at("workspace_MiB") == 3);
    CHECK(counters.at("deterministic") == 0);
    CHECK(counters.at("same_bits") == 1);
    CHECK(counters.at("runs_compared") >= 2);
    CHECK(counters.at("error") < counters.at("guaranteed_error"));
    CHECK(counters.at("error_of_largest") > 0);
    CHECK(counters.at("error_elements") > 0);
    CHECK_THAT(measurement->note(), ContainsSubstring("strict") && ContainsSubstring("bit-identical"));
  }
}

TEST_CASE("a frontier has every convolution and fully connected layer, pass and algorithm") {
  Shop shop;
  const Frontier frontier = shop.frontier();
  const Graph graph = shop.session.plans.graph(Shop::config());
  int layers = 0, expected = 0;
  for (const Node& node : graph.nodes()) expected += has_reference(node.op);
  for (const FrontierLine& line : frontier.lines) {
    CAPTURE(line.node, to_string(line.pass()));
    if (line.pass() == Pass::forward) layers += line.layers;
    int by_rule = 0;
    for (const LayerTuning::Candidate& tried : line.tuning.candidates) {
      REQUIRE(tried.ran());
      CHECK((tried.measured.seconds.size() == 3 || !tried.measured.finished));
      CHECK(tried.measured.error < (tried.algorithm.starts_with("winograd") ? 1e-4 : 1e-6));
      by_rule += tried.by_rule;
    }
    CHECK(by_rule == 1);
    const auto* conv = std::get_if<Conv>(&graph.node(line.node).op);
    const bool steady = conv != nullptr && conv->stride == Size(1);
    const int by_winograd = steady && conv->kernel == Size(3) ? 2 : steady && conv->kernel == Size(5) ? 1 : 0;
    CHECK(line.tuning.candidates.size() == static_cast<std::size_t>(conv == nullptr ? 2 : 4 + by_winograd));
  }
  CHECK(layers == expected);
  const FastestNet net = fastest_net(frontier, {});
  CHECK(net.missing.empty());
  CHECK(net.forward_seconds > 0);
  CHECK(net.backward_seconds > 0);
  CHECK(net.by_rule_seconds > 0);
  CHECK(fastest_net(frontier, {.max_error = 1e-30}).missing.size() == frontier.lines.size());
}

TEST_CASE("an algorithm that is far slower is sampled once, and not picked") {
  Shop shop;
  shop.odd->after = [](const Args&) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  const Frontier frontier = shop.frontier();
  for (std::size_t i = 0; i < frontier.lines.size(); ++i) {
    const FrontierLine& line = frontier.lines[i];
    if (line.tuning.candidates.size() < 3) continue;
    CHECK(find(line, "odd").measured.seconds.size() == 1);
    CHECK(line.tuning.candidates.at(*pick_within(line.tuning, {}).best).algorithm != "odd");
  }
}

TEST_CASE("an algorithm that is far slower, and would take too long, runs on one image only") {
  Shop shop;
  shop.odd->workspace = 12345678;
  int images = 0;
  shop.odd->after = [&images](const Args& args) {
    images = std::max(images, args.x[0].shape.n);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  };
  const Frontier frontier = make_frontier(shop.session, Shop::config(),
                                          {.race = {.rounds = 1}, .longest_seconds = 0.05}, [](const std::string&) {});
  CHECK(images == 1);
  for (const FrontierLine& line : frontier.lines) {
    if (line.tuning.candidates.size() < 3) continue;
    const LayerTuning::Candidate& odd = find(line, "odd");
    CHECK(odd.measured.of_one_image);
    REQUIRE(odd.measured.seconds.size() == 1);
    CHECK(odd.measured.seconds[0] >= 0.06);  // one image's time, scaled to the batch of two
    CHECK(odd.measured.workspace_bytes == 12345678);
    CHECK(odd.measured.error < 1e-6);
  }
}

TEST_CASE("an algorithm that needs too much memory is refused with the bytes, and the rest run") {
  Shop roomy;
  BackendOptions limited;
  limited.threads = 1;
  limited.memory_limit = std::size_t{64} << 20;
  const auto small = make_backend("eigen", limited);
  Shop cramped({}, *small);
  cramped.odd->workspace = 2 * limited.memory_limit;
  const Frontier all = roomy.frontier(1), here = cramped.frontier(1);
  REQUIRE(here.lines.size() == all.lines.size());
  int refused = 0;
  for (std::size_t i = 0; i < here.lines.size(); ++i)
    for (const LayerTuning::Candidate& one : here.lines[i].tuning.candidates) {
      CAPTURE(here.lines[i].node, to_string(here.lines[i].pass()), one.algorithm, one.refused);
      if (one.algorithm != "odd") {
        CHECK(one.ran() == find(all.lines[i], one.algorithm).ran());
        continue;
      }
      CHECK_FALSE(one.ran());
      CHECK_FALSE(one.unsupported);
      CHECK_THAT(one.refused, ContainsSubstring("bytes"));
      ++refused;
    }
  CHECK(refused > 0);
}

TEST_CASE("under a demand for determinism, an algorithm whose results change is not picked, whatever it declares") {
  Shop shop;
  shop.odd->after = [run = 0](const Args& args) mutable {
    if (++run % 2 == 0) return;
    float& first = args.y.as<float>()[0];
    first = std::nextafter(first, 2.0F);
  };
  const Frontier frontier = shop.frontier();
  const LayerTuning::Candidate& odd = find(frontier.lines.front(), "odd");
  CHECK(odd.measured.deterministic);
  CHECK_FALSE(is_deterministic(odd.measured));
  CHECK_FALSE(within(odd.measured, {.deterministic = true}));
}

TEST_CASE("a network is planned and timed with its picked algorithms") {
  Shop shop;
  const Frontier frontier = shop.frontier();
  FastestNet net = fastest_net(frontier, {});
  for (std::size_t i = 0; i < frontier.lines.size(); ++i)  // picks direct, even if it was not fastest
    for (std::size_t t = 0; t < frontier.lines[i].tuning.candidates.size(); ++t)
      if (frontier.lines[i].tuning.candidates[t].algorithm == "direct") net.picks[i].best = t;
  const auto choices = choices_of(shop.session, frontier, net);
  CHECK(why_not_planned(shop.session, frontier.config, choices).empty());
  const WholeNet whole = time_whole(shop.session, Shop::config(), choices, 2);
  CHECK(whole.picked.middle > 0);
  CHECK(whole.by_rule.middle > 0);

  Options planned = shop.session.plans.options(Shop::config(), Mode::training);
  planned.choice_of = choices;
  const Plan plan(shop.session.plans.graph(Shop::config()), *shop.odd, planned);
  for (const Call& call : plan.calls()) CHECK(call.algorithm == "direct");
}

TEST_CASE("a layer that fails with any workspace is reported with the reason, and the next network is measured") {
  const bool unsupported = GENERATE(true, false);
  FrontierOptions options;
  options.networks = {"mnist_cnn", "cifar10_cnn"};
  options.backends.names = {"eigen"};
  options.configs.batches = {2};
  options.net.width_divisor = 8;
  options.passes = 1;
  Session session(options);
  auto odd = std::make_unique<Odd>();
  odd->refuse = [unsupported](const Spec& spec) {
    if (!std::holds_alternative<MaxPool>(spec.op)) return;
    if (unsupported) throw Unsupported("no maxima here");
    throw DeviceError("no device any more");
  };
  session.backends.put("eigen", std::move(odd));
  std::vector<std::string> refusals;
  frontiers(session, options, [&refusals](const std::string& text) {
    if (text.starts_with("But ")) refusals.push_back(text);
  });
  REQUIRE(refusals.size() == 2);
  CHECK_THAT(refusals[0], ContainsSubstring("But mnist_cnn on eigen, batch 2 cannot be planned"));
  CHECK_THAT(refusals[1], ContainsSubstring("But cifar10_cnn on eigen, batch 2 cannot be planned") &&
                              ContainsSubstring(unsupported ? "no maxima here" : "no device any more") &&
                              ContainsSubstring(". Failed with any workspace: max_pooling2d_1"));
}

TEST_CASE("with CSV, standard error says that a network's picks do not fit, and what other algorithms need") {
  const std::string arguments =
      "frontier cifar10_cnn --backend=eigen --batch=2 --width_divisor=8 --passes=1 --workspace_limit=0 --format=csv";
  CHECK_THAT(
      test::said_by(arguments),
      ContainsSubstring("\nBut cifar10_cnn on eigen, batch 2 cannot be planned with these limits: ") &&
          ContainsSubstring("node max_pooling2d_1: ") &&
          ContainsSubstring(" bytes of workspace, the limit is 0. Layers without a choice need: max_pooling2d_1 "));
  CHECK_THAT(test::run_bench(arguments, test::Outputs::standard).said, !ContainsSubstring("cannot be planned"));
}
