// The error bounds of the algorithms of the backend "eigen". Some sums come near their bound, no layer of a network
// exceeds its bound, and a limit on the error picks algorithms by their bounds.

#include <variant>

#include "lamina/nets.h"
#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "tests/eigen/sets.h"
#include "tests/support/cases/plans.h"
#include "tests/support/cases/suite.h"
#include "tests/support/numbers/winograd_bounds.h"

using namespace lamina::test;

namespace {

constexpr std::size_t passes = 3;  // forward, backward_params, backward_data
constexpr const char* made[passes] = {"y", "dw", "dx"};

/// The algorithm of a pass, and its error bound.
struct Taken {
  std::string algorithm;
  double max_error = no_bound;
};
std::array<Taken, passes> taken(Backend& backend, const Spec& spec, const Choice& choice) {
  std::array<Taken, passes> all;
  for (const Lowered::Step& step : backend.lower(spec, choice).steps)
    for (const Pass pass : step.passes)
      if (static_cast<std::size_t>(pass) < passes)
        all[static_cast<std::size_t>(pass)] = {step.algorithm, step.max_error};
  return all;
}

const Values& result_of(const Result& result, std::size_t pass) {
  return pass == 0 ? result.y : pass == 1 ? result.dw[0] : result.dx[0];
}
const Bound& bound_of(const Bounds& bounds, std::size_t pass) {
  return pass == 0 ? bounds.y : pass == 1 ? bounds.dw[0] : bounds.dx[0];
}

/// The largest |got - want| / terms. Elements whose terms are 0 must be equal.
double worst(const Values& got, const Values& want, const Values& terms) {
  double largest = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double error = std::abs(got[i] - want[i]);
    if (error > 0 || std::isnan(error)) largest = std::max(largest, terms[i] > 0 ? error / terms[i] : no_bound);
    if (std::isnan(error)) return no_bound;
  }
  return largest;
}

/// First `each` ones, then numbers so small that a number is lost when it is added to 1. So a sum in order has the
/// largest error.
Values lossy(std::int64_t count, std::int64_t each) {
  Values values(static_cast<std::size_t>(count), std::ldexp(1.0, -24));
  std::fill(values.begin(), values.begin() + each, 1.0);
  return values;
}

/// A case in which one pass sums x or dy over a long dimension. All other factors are 1.
struct Long {
  Case c;
  std::size_t pass;
  bool through_dy;    // dy is lossy; if false, x is lossy
  std::int64_t each;  // number of first elements that are 1
  std::string algorithm = std::holds_alternative<Conv>(c.op) ? "im2col_gemm" : "gemm";
};

/// A convolution or fully connected op of a network. Its x, w and dy come from the network's pass in f64, rounded to
/// f32.
struct Layer {
  std::string name;
  Case c;
  Feed feed;
};
std::vector<Layer> layers_of(const Graph& graph, Backend& backend) {
  Plan plan(graph, backend,
            {.dtype = DType::f64, .choice = direct(), .fuse = false, .keep_values = true, .input_gradient = true});
  run_passes(plan);
  const auto in_f32 = [&](const Tensor& tensor) { return rounded(read(backend.device(), tensor), DType::f32); };
  std::vector<Layer> layers;
  std::vector<Case> seen;
  for (const Node& node : graph.nodes()) {
    if (!std::holds_alternative<Conv>(node.op) && !std::holds_alternative<FullyConnected>(node.op)) continue;
    const Node& input = graph.nodes()[static_cast<std::size_t>(node.inputs[0])];
    const Case c{node.name, node.op, {input.shape}};
    const auto same = [&](const Case& other) { return other.op == c.op && other.x == c.x; };
    if (std::any_of(seen.begin(), seen.end(), same)) continue;
    seen.push_back(c);
    Feed feed;
    feed.x.push_back(in_f32(std::holds_alternative<Input>(input.op) ? plan.input() : plan.value(input.name)));
    for (std::size_t i = 0; i < node.params.size(); ++i)
      feed.w.push_back(in_f32(plan.parameter(node.name + (i == 0 ? ".weight" : ".bias"))));
    feed.dy = in_f32(node.name == graph.nodes().back().name ? plan.output_gradient() : plan.gradient(node.name));
    layers.push_back({node.name, c, feed});
  }
  return layers;
}

/// A network that is small enough for quick sums in double, and wide enough, with enough tiles, for Winograd's
/// algorithms by default.
Graph small(const std::string& name) {
  const bool deep = name == "vgg16";
  return nets::build(name, {.batch = 8, .image = deep ? 32 : 64, .width_divisor = deep ? 4 : 2});
}

}  // namespace

TEST_CASE("a product guarantees an error bound, and some sums come near the bound") {
  const Conv one_by_one{.channels = 1, .kernel = 1, .bias = false};
  const std::vector<Long> all = {
      {{"", one_by_one, {{1, 4015, 1, 1}}}, 0, false, 1},
      {{"", Conv{.channels = 1, .kernel = 3, .bias = false}, {{1, 500, 3, 3}}}, 0, false, 1},
      {{"", one_by_one, {{1, 1, 56, 56}}}, 1, false, 1},
      {{"", one_by_one, {{96, 1, 7, 7}}}, 1, false, 1},
      {{"", Conv{.channels = 4015, .kernel = 1, .bias = false}, {{1, 5, 1, 1}}}, 2, true, 1},
      {{"", Conv{.channels = 4000, .kernel = 3, .stride = 2, .bias = false}, {{1, 5, 5, 5}}}, 2, true, 1},
      {{"", Conv{.channels = 4000, .kernel = 2, .stride = 2, .bias = false}, {{1, 3, 2, 2}}}, 2, true, 1},
      {{"", Conv{.channels = 4000, .kernel = 3, .stride = 3, .bias = false}, {{1, 3, 3, 3}}}, 2, true, 1},
      {{"", Conv{.channels = 1, .kernel = {40, 100}, .bias = false}, {{1, 1, 40, 100}}}, 0, false, 1, "depthwise"},
      {{"", one_by_one, {{1, 1, 56, 56}}}, 1, false, 1, "depthwise"},
      {{"", one_by_one, {{96, 1, 7, 7}}}, 1, false, 1, "depthwise"},
      {{"", Conv{.channels = 4015, .kernel = 1, .bias = false}, {{1, 1, 1, 1}}}, 2, true, 1, "depthwise"},
      {{"", Conv{.channels = 900, .kernel = 3, .stride = 2, .pad = 1, .bias = false}, {{1, 1, 3, 3}}},
       2,
       true,
       1,
       "depthwise"},
      {{"", FullyConnected{.outputs = 3, .bias = false}, {{2, 9000, 1, 1}}}, 0, false, 1},
      {{"", FullyConnected{.outputs = 3, .bias = false}, {{1000, 1200, 1, 1}}}, 1, false, 1200},
      {{"", FullyConnected{.outputs = 600, .bias = false}, {{2, 1200, 1, 1}}}, 2, true, 1},
  };
  const auto check = [&](int threads, const eigen::InstructionSet* set) {
    const auto eigen = make_backend("eigen", {.threads = threads, .instruction_set = set->name});
    for (const Long& l : all) {
      if (threads > 1 && l.pass != 1) continue;  // only backward_params adds up results of threads
      const Spec spec = *make_spec(*eigen, l.c, {.dtype = DType::f32});
      const Shape& x = l.c.x[0];
      const Shape y = spec.y.shape;
      Feed feed;
      feed.x.push_back(l.through_dy ? Values(static_cast<std::size_t>(x.count()), 1.0) : lossy(x.count(), l.each));
      feed.w.emplace_back(static_cast<std::size_t>(spec.w[0].shape.count()), 1.0);
      feed.dy = l.through_dy ? lossy(y.count(), l.each) : Values(static_cast<std::size_t>(y.count()), 1.0);
      Choice named;
      named.algorithm[l.pass] = l.algorithm;
      const Taken step = taken(*eigen, spec, named)[l.pass];
      INFO(to_string(l.c) << ", " << made[l.pass] << " by " << l.algorithm << ", " << set->name << " on " << threads
                          << " threads");
      const Result want = reference(l.c, feed);  // all terms are positive, so this is also the sum of |terms|
      const double error = worst(result_of(run_unit(*eigen, spec, named, feed), l.pass), result_of(want, l.pass),
                                 result_of(want, l.pass));
      CHECK(error <= step.max_error);
      CHECK(error >= 0.75 * step.max_error);
    }
  };
  for (const eigen::InstructionSet* set : sets_here())
    for (const int threads : {1, 4}) check(threads, set);
}

TEST_CASE("a convolution with batch norm and Add keeps its error bound, but exceeds the convolution's own bound") {
  const double u = std::ldexp(1.0, -24);
  const BatchNorm norm{.epsilon = static_cast<float>(2 * u)};
  const Conv one_by_one{.channels = 1, .kernel = 1, .bias = false}, three{.channels = 1, .kernel = 3, .bias = false};
  const std::vector<std::vector<Link>> tails = {{{norm}}, {{Add{}}}, {{norm}, {Add{}}}};
  for (const eigen::InstructionSet* set : sets_here()) {
    const auto eigen = make_backend("eigen", {.threads = 1, .instruction_set = set->name});
    for (const auto& [op, x] : {std::pair{one_by_one, Shape{1, 24, 1, 1}}, std::pair{three, Shape{1, 3, 3, 3}}}) {
      for (const std::vector<Link>& tail : tails) {
        const bool folds = std::holds_alternative<BatchNorm>(tail[0].op), adds = tail.size() == 2 || !folds;
        const Case c{"", op, {x}, tail, Mode::inference};
        // Each rounding loses u, and the sum is about 1 + 2^-11. The rounded numbers are: the first product, (1 +
        // 2^-12)^2; the other terms; the batch norm's factor, 1 + u, and its shift; the other operand of the Add.
        Feed feed;
        feed.x.push_back(lossy(x.count(), 1));
        feed.w.emplace_back(static_cast<std::size_t>(x.count()), 1.0);
        feed.x[0][0] = feed.w[0][0] = 1 + std::ldexp(1.0, -12);
        if (folds) {
          feed.w.push_back({1 + 2 * u});
          feed.w.push_back({u});
          feed.state = {{0.0}, {1.0}};
        }
        if (adds) feed.x.push_back({u});
        Choice named;
        named.algorithm[0] = "im2col_gemm";
        const Spec spec = *make_spec(*eigen, c, {.dtype = DType::f32});
        const Spec alone = *make_spec(*eigen, {"", op, {x}, {}, Mode::inference}, {.dtype = DType::f32});
        const double promised = taken(*eigen, spec, named)[0].max_error;
        INFO(to_string(c) << " by " << set->name);
        const Values want = reference(c, feed).y;  // all terms are positive, so this is also the sum of |terms|
        const double error = worst(run_unit(*eigen, spec, named, feed).y, want, want);
        CHECK(error <= promised);
        CHECK(error >= 0.75 * promised);
        CHECK(error > taken(*eigen, alone, named)[0].max_error);
      }
    }
  }
}

TEST_CASE("every layer of a network keeps the documented error bound of its algorithm") {
  const auto eigen = make_backend("eigen");
  const double u = std::ldexp(1.0, -24);
  for (const char* network : {"alexnet", "resnet18", "vgg16"}) {
    int transformed = 0, products = 0;
    for (const Layer& layer : layers_of(small(network), *eigen)) {
      const Spec spec = *make_spec(*eigen, layer.c, {.dtype = DType::f32});
      const Result want = reference(layer.c, layer.feed);
      const Bounds terms = bounds_of(layer.c, layer.feed);
      for (const Choice& choice : {Choice{}, Choice{.max_error = 1e-4}, Choice{.max_error = 1e-6}}) {
        const std::array<Taken, passes> steps = taken(*eigen, spec, choice);
        const Result got = run_unit(*eigen, spec, choice, layer.feed);
        for (std::size_t pass = 0; pass < passes; ++pass) {
          const Taken& step = steps[pass];
          INFO(network << ' ' << layer.name << ", " << made[pass] << " by " << step.algorithm << ", which keeps "
                       << step.max_error << ", at most " << choice.max_error << " wanted");
          CHECK(step.max_error <= choice.max_error);
          if (step.max_error == no_bound) {
            REQUIRE(winograd_named(step.algorithm));
            const Bounds documented = bounds_of(layer.c, layer.feed, {step.algorithm, step.algorithm, step.algorithm});
            const Bound& bound = bound_of(documented, pass);
            CHECK(worst(result_of(got, pass), result_of(want, pass), bound.terms) <= bound.count * u);
            ++transformed;
          } else {
            CHECK(worst(result_of(got, pass), result_of(want, pass), bound_of(terms, pass).terms) <= step.max_error);
            ++products;
          }
        }
      }
    }
    CHECK(transformed >= 12);
    CHECK(products >= 12);
  }
}

TEST_CASE("an error limit of 2e-4 leaves every layer a gemm, and 1e-6 gives an algorithm that guarantees it") {
  const auto eigen = make_backend("eigen", {.threads = 2});
  for (const char* network : {"resnet50", "vgg16", "alexnet"}) {
    const Graph graph = nets::build(network, {.batch = 16});
    for (const Node& node : graph.nodes()) {
      if (!std::holds_alternative<Conv>(node.op) && !std::holds_alternative<FullyConnected>(node.op)) continue;
      const Case c{node.name, node.op, {graph.nodes()[static_cast<std::size_t>(node.inputs[0])].shape}};
      const Spec spec = *make_spec(*eigen, c, {.dtype = DType::f32});
      INFO(network << ' ' << node.name);
      for (const Taken& step : taken(*eigen, spec, {.max_error = 2e-4})) {
        CHECK(step.max_error <= 2e-4);
        CHECK(step.algorithm.ends_with("gemm"));
      }
      for (const Taken& step : taken(*eigen, spec, {.max_error = 1e-6})) CHECK(step.max_error <= 1e-6);
    }
  }
}
