// Layers measured by every algorithm, on backends that err, waver, refuse and dawdle in known ways.

#include "frontier.h"

#include <chrono>
#include <cmath>
#include <set>
#include <thread>

#include "io/files.h"
#include "lamina/error.h"
#include "rows.h"
#include "support/backend.h"
#include "support/catch.h"
#include "support/wrapped_backend.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;

namespace {

/// A kernel and something after it.
class Then final : public Kernel {
 public:
  Then(std::shared_ptr<Kernel> inner, std::function<void(const Args&)> after, std::size_t workspace_bytes)
      : inner_(std::move(inner)), after_(std::move(after)), workspace_bytes_(workspace_bytes) {}
  std::size_t workspace_bytes() const override { return std::max(workspace_bytes_, inner_->workspace_bytes()); }
  void run(const Args& args) override {
    inner_->run(args);
    after_(args);
  }

 private:
  std::shared_ptr<Kernel> inner_;
  std::function<void(const Args&)> after_;
  std::size_t workspace_bytes_;
};

/// Eigen with one algorithm more for convolutions: "odd", which does as im2col_gemm and then something else.
class Odd final : public test::WrappedBackend {
 public:
  Odd() : WrappedBackend(test::oracle()) {}

  std::function<void(const Args&)> after = [](const Args&) {};
  std::size_t workspace = 0;
  bool deterministic = true;
  bool only_3x3 = false;
  bool no_room_by_rule = false;

  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    std::vector<std::string> names = WrappedBackend::algorithms(spec, pass);
    if (takes(spec) && !names.empty()) names.emplace_back("odd");
    return names;
  }

  Lowered lower(const Spec& spec, const Choice& choice) override {
    if (no_room_by_rule && choice.algorithm == std::array<std::string, 3>{}) throw OutOfMemory("no room");
    Choice plain = choice;
    for (std::string& name : plain.algorithm)
      if (name == "odd") name = "im2col_gemm";
    if (plain != choice && !takes(spec)) throw Unsupported("odd: needs a 3x3 window");
    Lowered lowered = WrappedBackend::lower(spec, plain);
    for (Lowered::Step& step : lowered.steps) {
      const auto pass = static_cast<std::size_t>(step.covers.front());
      if (pass >= choice.algorithm.size() || choice.algorithm[pass] != "odd") continue;
      step.algorithm = "odd";
      step.deterministic = deterministic;
      step.kernel = std::make_shared<Then>(step.kernel, after, workspace);
      if (step.kernel->workspace_bytes() > choice.workspace_limit) throw Unsupported("odd: too much workspace");
    }
    return lowered;
  }

 private:
  bool takes(const Spec& spec) const {
    const auto* conv = std::get_if<Conv>(&spec.op);
    return conv != nullptr && (!only_3x3 || conv->kernel == Size(3));
  }
};

Tensor result_of(const Args& args, Pass pass) {
  return pass == Pass::forward ? args.y : pass == Pass::backward_data ? args.dx[0] : args.dw[0];
}

void scale(const Tensor& tensor, double factor) {
  for (std::int64_t i = 0; i < tensor.shape.count(); ++i)
    tensor.as<float>()[i] = static_cast<float>(tensor.as<float>()[i] * factor);
}

/// One channel to two by single products: each number is one term, so that its relative error is of the terms, too.
Graph one_product() {
  Graph graph("one_product");
  const Value x = graph.input({1, 1, 5, 5}, "x0");
  conv(x, "c", {.channels = 2, .kernel = 1, .bias = false});
  return graph;
}

LayerFacts facts_of(Backend& backend, const Graph& graph, Pass pass, const std::string& algorithm) {
  const Case c{"alexnet", "eigen"};
  return LayerRun(backend, graph, layer_options(c, graph.nodes().back(), pass, algorithm, {}), pass, no_reference_yet())
      .facts();
}

constexpr Pass passes[] = {Pass::forward, Pass::backward_data, Pass::backward_params};

/// A workshop of small networks on an Odd backend under the name of eigen.
struct Shop {
  Workshop workshop;
  Odd* odd;

  explicit Shop(BenchOptions options = {}) : workshop((options.batches = {2}, options.width_divisor = 8, options)) {
    auto made = std::make_unique<Odd>();
    odd = made.get();
    workshop.put("eigen", std::move(made));
  }
  static Case facts() { return {"cifar10_cnn", "eigen", DType::f32, Layout::nchw, 2}; }
  Frontier frontier(int samples = 3) {
    return make_frontier(workshop, facts(), {.samples = samples}, [](const std::string&) {});
  }
};

const Tried& find(const FrontierLine& line, const std::string& algorithm) {
  for (const Tried& tried : line.tried)
    if (tried.algorithm == algorithm) return tried;
  FAIL("no " << algorithm << " for " << line.node);
  return line.tried.front();
}

}  // namespace

TEST_CASE("an error of one in a thousand is measured as that, and none as none") {
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
    CHECK(right.error->of_terms <= right.guaranteed_error);
  }
}

TEST_CASE("results that change from run to run are seen, and so are those that do not") {
  Odd odd;
  for (const Pass pass : passes) {
    CAPTURE(to_string(pass));
    CHECK(facts_of(odd, one_product(), pass, "odd").same_bits);
    odd.after = [pass, run = 0](const Args& args) mutable {
      // In the last bit of the last number, and in every third run only.
      const Tensor tensor = result_of(args, pass);
      float& last = tensor.as<float>()[tensor.shape.count() - 1];
      if (++run % 3 == 0) last = std::nextafter(last, 2.0F);
    };
    const LayerFacts facts = facts_of(odd, one_product(), pass, "odd");
    CHECK_FALSE(facts.same_bits);
    CHECK(facts.deterministic);  // as declared
    CHECK(facts.runs_compared >= 3);
    odd.after = [](const Args&) {};
  }
}

TEST_CASE("an algorithm that finds no room at some run is out with the reason, and the frontier goes on") {
  for (const int room : {0, 1, 2, 3, 4, 5, 6}) {
    CAPTURE(room);
    Shop shop;
    shop.odd->after = [room, run = 0](const Args&) mutable {
      if (++run > room) throw OutOfMemory("no room");
    };
    int odd = 0;
    for (const FrontierLine& line : shop.frontier(7).lines)
      for (const Tried& tried : line.tried) {
        if (tried.algorithm != "odd") {
          CHECK(tried.ran());
          continue;
        }
        if (tried.seconds.size() == 1) continue;  // of a busy machine: so slow that it was not asked again
        ++odd;
        CHECK_FALSE(tried.ran());
        CHECK(tried.refusal == "no room");
        CHECK_FALSE(tried.unsupported);
      }
    CHECK(odd > 0);
  }
  Shop shop;
  shop.odd->no_room_by_rule = true;  // then no line is the rule's
  for (const FrontierLine& line : shop.frontier(1).lines)
    for (const Tried& tried : line.tried) CHECK_FALSE(tried.by_rule);
}

TEST_CASE("an algorithm that some layers can do has rows for all, and where it cannot they say why") {
  Shop shop;
  shop.odd->only_3x3 = true;
  const Case c{"resnet50", "eigen", DType::f32, Layout::nchw, 1};
  int refused = 0, run = 0;
  std::set<std::string> names;
  for (const Row& row : layer_rows(shop.workshop, c)) {
    CHECK(names.insert(row.name).second);
    if (row.name.find("/eigen/odd/") == std::string::npos) continue;
    CAPTURE(row.name);
    if (row.name.find("/layer1.0.conv1/") != std::string::npos) {
      ++refused;
      CHECK_THROWS_AS(row.group->open(), Unsupported);
      CHECK_THROWS_WITH(row.group->open(), ContainsSubstring("needs a 3x3 window"));
    }
    if (row.name.find("/layer1.0.conv2/") != std::string::npos) ++run;
  }
  CHECK(refused == 3);
  CHECK(run == 3);
}

TEST_CASE("a layer's row tells workspace, determinism and error") {
  Shop shop;
  shop.odd->workspace = 3 << 20;
  shop.odd->deterministic = false;
  for (const Row& row : layer_rows(shop.workshop, Shop::facts())) {
    if (row.name.find("/eigen/odd/") == std::string::npos) continue;
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
    CHECK_THAT(measurement->note(), ContainsSubstring("strict") && ContainsSubstring("same bits"));
  }
}

TEST_CASE("a frontier has every convolution and fully connected layer, pass and algorithm") {
  Shop shop;
  const Frontier frontier = shop.frontier();
  const Graph graph = shop.workshop.graph(Shop::facts());
  int layers = 0, expected = 0;
  for (const Node& node : graph.nodes()) expected += has_reference(node.op);
  for (const FrontierLine& line : frontier.lines) {
    CAPTURE(line.node, to_string(line.pass));
    if (line.pass == Pass::forward) layers += line.layers;
    int by_rule = 0;
    for (const Tried& tried : line.tried) {
      REQUIRE(tried.ran());
      CHECK((tried.seconds.size() == 3 || tried.seconds.size() == 1));
      CHECK(tried.offer().error < (tried.algorithm.starts_with("winograd") ? 1e-4 : 1e-6));
      by_rule += tried.by_rule;
    }
    CHECK(by_rule == 1);
    const auto* conv = std::get_if<Conv>(&graph.node(line.node).op);
    const bool by_winograd = conv != nullptr && conv->kernel == Size(3) && conv->stride == Size(1);
    CHECK(line.tried.size() == (conv == nullptr ? 2 : by_winograd ? 5 : 3));
  }
  CHECK(layers == expected);
  const FastestNet net = fastest_net(frontier, {});
  CHECK(net.missing.empty());
  CHECK(net.forward_seconds > 0);
  CHECK(net.backward_seconds > 0);
  CHECK(net.forward_seconds + net.backward_seconds <= net.by_rule_seconds);
}

TEST_CASE("an algorithm that is ten times as slow is sampled once, and not picked") {
  Shop shop;
  shop.odd->after = [](const Args&) { std::this_thread::sleep_for(std::chrono::milliseconds(30)); };
  const Frontier frontier = shop.frontier();
  for (std::size_t i = 0; i < frontier.lines.size(); ++i) {
    const FrontierLine& line = frontier.lines[i];
    if (line.tried.size() < 3) continue;
    CHECK(find(line, "odd").seconds.size() == 1);
    CHECK(line.tried[*pick_fastest(line, {}).best].algorithm != "odd");
  }
}

TEST_CASE("an algorithm far behind that would take too long runs on one image only") {
  Shop shop;
  shop.odd->workspace = 12345678;
  int images = 0;
  shop.odd->after = [&images](const Args& args) {
    images = std::max(images, args.x[0].shape.n);
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
  };
  const Frontier frontier =
      make_frontier(shop.workshop, Shop::facts(), {.samples = 1, .longest_seconds = 0.05}, [](const std::string&) {});
  CHECK(images == 1);
  for (const FrontierLine& line : frontier.lines) {
    if (line.tried.size() < 3) continue;
    const Tried& odd = find(line, "odd");
    CHECK(odd.of_one_image);
    REQUIRE(odd.seconds.size() == 1);
    CHECK(odd.seconds[0] >= 0.06);  // by the batch of two
    CHECK(odd.facts.workspace_bytes == 12345678);
    CHECK(odd.offer().error < 1e-6);
  }
}

TEST_CASE("limits decide what is picked") {
  Shop shop;
  shop.odd->workspace = 1 << 20;
  const Frontier frontier = shop.frontier();
  const FrontierLine& line = frontier.lines.front();
  // Whatever is fastest: with nothing but direct's rounding allowed, direct is left.
  double least = 1;
  for (const Tried& tried : line.tried)
    if (tried.algorithm != "direct") least = std::min(least, tried.offer().error);
  const double direct = find(line, "direct").offer().error;
  REQUIRE(direct < least);
  CHECK(line.tried[*pick_fastest(line, {.max_error = (direct + least) / 2}).best].algorithm == "direct");
  CHECK_FALSE(pick_fastest(line, {.max_error = direct / 2}).best.has_value());
  for (const FrontierLine& each : frontier.lines)
    CHECK(each.tried[*pick_fastest(each, {.workspace_bytes = (1 << 20) - 1}).best].algorithm != "odd");
  const FastestNet none = fastest_net(frontier, {.max_error = 1e-30});
  CHECK(none.missing.size() == frontier.lines.size());
}

TEST_CASE("what wavers is not picked where determinism is asked for, whatever it declares") {
  Shop shop;
  shop.odd->after = [run = 0](const Args& args) mutable {
    if (args.dy || ++run % 2 == 0) return;
    float& first = args.y.as<float>()[0];
    first = std::nextafter(first, 2.0F);
  };
  const Frontier frontier = shop.frontier();
  const Tried& odd = find(frontier.lines.front(), "odd");
  CHECK(odd.facts.deterministic);
  CHECK_FALSE(odd.offer().deterministic);
  CHECK_FALSE(within(odd.offer(), {.deterministic = true}));
}

TEST_CASE("picks that were saved are what a network is planned with, and only under the same demands") {
  const test::Folder folder;
  BenchOptions options;
  options.choices = folder / "choices.json";
  Shop shop;
  const Frontier frontier = shop.frontier();
  FastestNet net = fastest_net(frontier, {});
  for (std::size_t i = 0; i < frontier.lines.size(); ++i)  // whatever was fastest: direct
    for (std::size_t t = 0; t < frontier.lines[i].tried.size(); ++t)
      if (frontier.lines[i].tried[t].algorithm == "direct") net.picks[i].best = t;
  save_choices(shop.workshop, frontier, net, options.choices);

  Shop same(options);
  const Options planned = same.workshop.plan_options(Shop::facts(), Mode::training);
  CHECK(planned.choice_of == choices_of(shop.workshop, frontier, net));
  const Plan plan(same.workshop.graph(Shop::facts()), *same.odd, planned);
  for (const Call& call : plan.calls()) CHECK(call.algorithm == "direct");
  CHECK(net_name(Shop::facts(), "total", options).ends_with("/choices"));

  options.choice.workspace_limit = 5;
  Shop other(options);
  CHECK_THROWS_WITH(other.workshop.plan_options(Shop::facts(), Mode::training),
                    ContainsSubstring("no choice for cifar10_cnn") && ContainsSubstring("--frontier"));
  test::write(options.choices, "{");
  Shop corrupt(options);
  CHECK_THROWS_AS(corrupt.workshop.plan_options(Shop::facts(), Mode::training), FileError);
}

TEST_CASE("a whole network is timed with its picks and by rule") {
  Shop shop;
  const Frontier frontier = shop.frontier(1);
  const WholeNet whole =
      time_whole(shop.workshop, Shop::facts(), choices_of(shop.workshop, frontier, fastest_net(frontier, {})), 2);
  CHECK(whole.picked.middle > 0);
  CHECK(whole.by_rule.middle > 0);
}

TEST_CASE("names tell limits, math and choices that are not the default") {
  BenchOptions options;
  options.choice.deterministic = true;
  options.choice.max_error = 1e-6;
  options.choice.workspace_limit = 1 << 20;
  options.choice.math = Math::tf32;
  options.choices = "c.json";
  const Case c{"resnet50", "eigen"};
  CHECK(net_name(c, "total", options) ==
        "net/resnet50/total/eigen/tf32/nchw/batch:16/deterministic/max_error:1e-06/workspace_limit:1048576/choices");
  CHECK(layer_name(c, "conv1", "forward", "direct", options) ==
        "layer/resnet50/conv1/forward/eigen/direct/tf32/nchw/batch:16/deterministic/max_error:1e-06/"
        "workspace_limit:1048576");
}
