// Plans of whole tiny nets: gradients by differences in every mode, results of all modes, and results of single ops.

#include "tests/support/cases/plans.h"
#include "tests/support/cases/random_graph.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

Value conv_bn(Value x, const std::string& name, Conv op) {
  op.bias = false;
  return batch_norm(conv(x, name + ".conv", op), name + ".bn");
}

/// A post-activation bottleneck with a projection, then a bottleneck with an identity.
Graph tiny_residual() {
  Graph graph("residual");
  Value x = relu(conv_bn(graph.input({3, 3, 8, 7}), "stem", {.channels = 4, .kernel = 3, .pad = 1}), "stem.relu");
  const auto bottleneck = [](Value in, const std::string& name, int width, int stride) {
    Value y = relu(conv_bn(in, name + ".1", {.channels = width, .kernel = 1}));
    y = relu(conv_bn(y, name + ".2", {.channels = width, .kernel = 3, .stride = stride, .pad = 1}));
    y = conv_bn(y, name + ".3", {.channels = 2 * width, .kernel = 1});
    if (stride != 1) in = conv_bn(in, name + ".downsample", {.channels = 2 * width, .kernel = 1, .stride = stride});
    return relu(add(y, in));
  };
  x = bottleneck(bottleneck(x, "layer1", 3, 2), "layer2", 3, 1);
  fully_connected(global_average_pool(x), "fc", {.outputs = 4});
  return graph;
}

/// A pre-activation net. The first sum has two readers: a batch norm and the second sum.
Graph preactivation() {
  Graph graph("preactivation");
  Value x = conv(graph.input({3, 2, 6, 7}), "stem", {.channels = 4, .kernel = 3, .pad = 1, .bias = false});
  for (const std::string name : {"layer1", "layer2"}) {
    Value y = relu(batch_norm(x, name + ".bn1"));
    y = conv(y, name + ".conv1", {.channels = 3, .kernel = 3, .pad = 1, .bias = false});
    y = conv(relu(batch_norm(y, name + ".bn2")), name + ".conv2", {.channels = 4, .kernel = 1, .bias = false});
    x = add(x, y);
  }
  fully_connected(global_average_pool(relu(batch_norm(x, "bn"))), "fc", {.outputs = 3});
  return graph;
}

/// LRN, then four parallel branches, one with max pooling, then a slice and pools.
Graph tiny_inception() {
  Graph graph("inception");
  Value x = relu(conv(graph.input({2, 3, 9, 9}), "stem", {.channels = 6, .kernel = 3, .stride = 2, .pad = 1}));
  x = lrn(max_pool(x, "pool1", {.window = 3, .stride = 1, .pad = 1}), "lrn", {.size = 3, .alpha = 0.5});
  const auto branch = [&](Value in, const std::string& name, int reduced, Conv op) {
    if (reduced > 0) in = relu(conv(in, name + ".reduce", {.channels = reduced, .kernel = 1}));
    return relu(conv(in, name + ".conv", op));
  };
  const Value joined = concat(
      {branch(x, "1x1", 0, {.channels = 2, .kernel = 1}), branch(x, "3x3", 2, {.channels = 3, .kernel = 3, .pad = 1}),
       branch(x, "5x5", 2, {.channels = 2, .kernel = 5, .pad = 2}),
       branch(max_pool(x, "pool2", {.window = 3, .stride = 1, .pad = 1}), "pooled", 0, {.channels = 2, .kernel = 1})});
  const Value part = slice(joined, "slice", {.first = 1, .count = 5});
  const Value both =
      concat({average_pool(joined, "pool3", {.window = 3, .stride = 2}),
              max_pool(part, "pool4", {.window = 2, .stride = 2, .pad = 0, .rounding = Rounding::down})});
  fully_connected(both, "fc", {.outputs = 4});
  return graph;
}

/// Grouped convolutions, LRN, pooling rounded up and dropout, as in AlexNet, with a softmax at the end.
Graph grouped() {
  Graph graph("grouped");
  Value x = relu(conv(graph.input({2, 3, 15, 13}), "conv1", {.channels = 4, .kernel = 5, .stride = 2, .pad = 1}));
  x = max_pool(lrn(x, "lrn1", {.size = 5, .alpha = 0.1, .k = 2}), "pool1",
               {.window = 3, .stride = 2, .rounding = Rounding::up});
  x = relu(conv(x, "conv2", {.channels = 6, .kernel = 3, .pad = 1, .groups = 2}));
  x = relu(conv(x, "conv3", {.channels = 4, .kernel = 3, .pad = 1, .groups = 2}));
  x = max_pool(x, "pool3", {.window = 2, .stride = 2});
  x = relu(fully_connected(dropout(x, "drop4"), "fc4", {.outputs = 8}));
  x = fully_connected(dropout(x, "drop5", {.rate = 0.25}), "fc5", {.outputs = 5});
  softmax(x);
  return graph;
}

using Build = std::function<Graph()>;

const std::vector<Build> builds = {tiny_residual, preactivation, tiny_inception, grouped};

/// Every combination of options that must not change a plan's results.
std::vector<Options> modes() {
  std::vector<Options> all;
  for (const bool fuse : {false, true})
    for (const Keep keep : {Keep::all, Keep::cheap})
      for (const bool keep_values : {true, false})
        for (const bool accumulate : {false, true}) {
          const Options options{.dtype = DType::f64,
                                .fuse = fuse,
                                .keep = keep,
                                .keep_values = keep_values,
                                .input_gradient = true,
                                .accumulate_parameters = accumulate};
          all.push_back(options);
        }
  return all;
}

std::string to_string(const Options& options) {
  return std::string(options.fuse ? "fused" : "unfused") + (options.keep == Keep::all ? ", all kept" : ", recomputed") +
         (options.keep_values ? ", values kept" : ", packed") +
         (options.accumulate_parameters ? ", accumulated" : ", overwritten");
}

void check_modes(const Graph& graph) {
  Plan plain(graph, backend(), modes().front());
  const Outcome want = run(plain);
  for (const Options& options : modes()) {
    INFO(graph.name() << ' ' << to_string(options));
    Plan plan(graph, backend(), options);
    Outcome got = run(plan);
    check_same(got, want, 1e-12);
    // A second pass adds the same gradients again, or overwrites them. Running statistics would change, so only nets
    // without state are tested.
    if (!want.state.empty()) continue;
    got = run(plan);
    if (options.accumulate_parameters)
      for (std::size_t i = 0; i < plan.parameter_names().size(); ++i)
        for (double& g : got.gradients[i]) g /= 2;
    check_same(got, want, 1e-12);
  }
  for (const bool fuse : {false, true}) {
    INFO(graph.name() << ", no input gradient");
    Plan plan(graph, backend(), {.dtype = DType::f64, .fuse = fuse});
    check_same(run(plan), want, 1e-12);
  }
}

void check_composition(const Graph& graph) {
  for (const Mode mode : {Mode::training, Mode::inference})
    for (const bool fuse : {false, true}) {
      INFO(graph.name() << (mode == Mode::training ? " training" : " inference") << (fuse ? " fused" : " unfused"));
      Plan plan(graph, backend(), {.mode = mode, .dtype = DType::f64, .fuse = fuse});
      set_statistics(plan);
      const Values want = compose(plan);
      plan.forward();
      Outcome got, expected;
      got.output = read(plan, plan.output());
      expected.output = want;
      check_same(got, expected, 1e-12);
    }
}

}  // namespace

TEST_CASE("the gradients of tiny nets agree with differences in every mode") {
  const auto net = static_cast<std::size_t>(GENERATE(0, 1, 2, 3));
  const Graph graph = builds[net]();
  for (const Options& options : modes()) {
    INFO(graph.name() << ' ' << to_string(options));
    check_passed(check_gradients(graph, one_thread(), options, {.coordinates = 16, .directions = 3}));
  }
}

TEST_CASE("the gradients of tiny nets agree with differences in every type") {
  for (const Build& build : builds)
    for (const DType dtype : element_types()) {
      const Graph graph = build();
      INFO(graph.name() << ' ' << to_string(dtype));
      check_passed(check_gradients(graph, one_thread(), {.dtype = dtype}));
    }
}

TEST_CASE("tiny nets: plans with all options (fusion, recomputation, packing, input gradient) agree to 1e-12") {
  for (const Build& build : builds) check_modes(build());
}

TEST_CASE("tiny nets: a plan has the results of its ops one by one") {
  for (const Build& build : builds) check_composition(build());
}

TEST_CASE("tiny nets: outputs in f32 differ from f64 by at most 1e-4") {
  for (const Build& build : builds) {
    const Graph graph = build();
    INFO(graph.name());
    Outcome got, want;
    for (const DType dtype : element_types()) {
      Plan plan(graph, backend(), {.dtype = dtype});
      plan.forward();
      (dtype == DType::f64 ? want : got).output = read(plan, plan.output());
    }
    check_same(got, want, 1e-4);
  }
}

TEST_CASE("random graphs: every mode has the same results", "[random]") {
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t key = seed() * 1000 + i;
    INFO("LAMINA_TEST_SEED=" << seed() << ", graph " << key);
    Dice dice(key);
    const Graph graph = random_graph(dice, dice(3, 14));
    if (decided_by_library() && refused(graph, modes().front())) continue;
    check_modes(graph);
    check_composition(graph);
  }
}

TEST_CASE("the gradients of random graphs agree with differences", "[random]") {
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t key = seed() * 1000 + 500 + i;
    INFO("LAMINA_TEST_SEED=" << seed() << ", graph " << key);
    Dice dice(key);
    const Graph graph = random_graph(dice, dice(3, 14));
    const std::vector<Options> all = modes();
    if (decided_by_library() && refused(graph, all.front())) continue;
    for (const std::size_t mode : {std::size_t{key * 7 % all.size()}, std::size_t{(key * 7 + 9) % all.size()}}) {
      INFO(to_string(all[mode]));
      check_passed(check_gradients(graph, one_thread(), all[mode], {.coordinates = 16, .directions = 3}));
    }
  }
}
