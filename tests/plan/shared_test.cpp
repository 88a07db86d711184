// Shared parameters of several nodes have one memory and one gradient, which is the sum over all uses.

#include "tests/support/cases/plans.h"
#include "tests/support/cases/random_graph.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Shares some random parameters that can be shared.
void share_some(Dice& dice, Graph& graph) {
  const std::vector<Stored> all = graph.parameters();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t k = 0; k < i; ++k)
      if (all[i].shape == all[k].shape && all[i].first.node != all[k].first.node && dice.chance(0.6)) {
        try {
          graph.share(all[i].name, all[k].name);
        } catch (const UsageError&) {
          // a node would use the parameter twice
        }
      }
}

/// Uses a convolution's filter three times (the last two also share a bias), a batch norm twice, and a matrix twice.
Graph many_uses(bool shared) {
  Graph graph("many uses");
  Value x = graph.input({3, 4, 7, 6});
  for (const std::string use : {"a", "b", "c"})
    x = relu(conv(x, "conv." + use, {.channels = 4, .kernel = 3, .pad = 1}));
  Value y = batch_norm(x, "norm.a"), z = batch_norm(conv(y, "between", {.channels = 4, .kernel = 1}), "norm.b");
  y = relu(add(y, z));
  y = fully_connected(fully_connected(global_average_pool(y), "fc.a", {.outputs = 4}), "fc.b", {.outputs = 4});
  if (!shared) return graph;
  graph.share("conv.b.weight", "conv.a.weight");
  graph.share_all("conv.c", "conv.b");
  graph.share_all("norm.b", "norm.a");
  graph.share("fc.b.weight", "fc.a.weight");
  return graph;
}

/// A network from ids to scores of the next word. The embedding's table is also the last matrix.
Graph tied() {
  Graph graph("tied");
  Value x = embedding(graph.input({3, 1, 5, 1}, "ids"), "table", {.vocabulary = 7, .features = 4});
  x = lstm(x, "lstm", {.hidden = 4, .steps = Steps::last});
  fully_connected(x, "head", {.outputs = 7});
  graph.share("head.weight", "table.weight");
  return graph;
}

/// Runs plans of a net with and without shared parameters, with the same numbers. A shared gradient must be the sum of
/// the gradients of the plan without sharing.
void compare(const Graph& shared, const Graph& apart, const Options& options, double relative) {
  Plan plan(shared, backend(), options), other(apart, backend(), options);
  std::map<std::string, std::vector<std::string>> uses;
  for (const Stored& its : shared.parameters()) {
    uses[its.name] = its.aliases;
    uses[its.name].push_back(its.name);
    for (const std::string& use : uses[its.name])
      write(other, other.parameter(use), read(plan, plan.parameter(its.name)));
  }
  other.parameters_changed();
  Outcome got = run(plan), want = run(other), sums;
  std::map<std::string, Values> each;
  for (std::size_t i = 0; i < want.names.size(); ++i) each[want.names[i]] = want.gradients[i];
  for (const std::string& name : got.names) {
    Values sum = each.at(name);
    for (const std::string& use : uses[name])
      for (std::size_t i = 0; use != name && i < sum.size(); ++i) sum[i] += each.at(use)[i];
    sums.names.push_back(name);
    sums.gradients.push_back(sum);
  }
  sums.output = want.output;
  got.state.clear();
  check_same(got, sums, relative);
  CHECK(predict_memory(shared, backend(), options).total() == plan.memory().total());
  CHECK(plan.memory().parameters <= other.memory().parameters);
}

}  // namespace

TEST_CASE("a shared parameter's gradient is the sum over all uses, for all options of a plan", "[random]") {
  Dice dice(seed() ^ 0x5A4E);
  for (int round = 0; round < 30; ++round) {
    const Graph apart = random_graph(dice, dice(4, 14));
    Graph shared = apart.clone();
    share_some(dice, shared);
    Options options{.dtype = DType::f64};
    draw_options(dice, options);
    INFO("seed " << seed() << ", round " << round);
    if (decided_by_library() && refused(apart, options)) continue;
    compare(shared, apart, options, 1e-12);
  }
}

TEST_CASE("the gradient of a shared parameter is the sum over all uses in every type") {
  std::vector<DType> types = element_types();
  for (const DType half : half_types()) types.push_back(half);
  for (const DType dtype : types)
    for (const bool accumulate : {false, true})
      for (const Layout layout : {Layout::nchw, Layout::nhwc})
        for (const Mode mode : {Mode::training, Mode::inference}) {
          Options options{.mode = mode, .dtype = dtype, .layout = layout, .accumulate_parameters = accumulate};
          INFO(to_string(dtype) << ' ' << to_string(layout) << (mode == Mode::inference ? ", inference" : "")
                                << (accumulate ? ", accumulating" : ""));
          if (refused(many_uses(false), options)) continue;
          compare(many_uses(true), many_uses(false), options, dtype == DType::f64 ? 1e-12 : 1e-4);
        }
}

TEST_CASE("the gradients of shared parameters agree with differences") {
  for (const Graph& graph : {many_uses(true), tied()})
    for (const bool accumulate : {false, true}) {
      INFO(graph.name() << (accumulate ? ", accumulating" : ""));
      check_passed(check_gradients(graph, one_thread(), {.dtype = DType::f64, .accumulate_parameters = accumulate},
                                   {.coordinates = 16, .directions = 3}));
    }
}

TEST_CASE("shared running statistics are updated by each node, in the order of the graph") {
  const auto build = [](bool shared) {
    Graph graph("statistics");
    const Value a = batch_norm(graph.input({3, 4, 5, 5}, "a"), "norm.a");
    const Value b = batch_norm(graph.input({3, 4, 5, 5}, "b"), "norm.b");
    add(relu(a, "relu.a"), relu(b, "relu.b"));  // a fused ReLU could move norm.a behind norm.b
    if (shared) graph.share_all("norm.b", "norm.a");
    return graph;
  };
  for (const bool fuse : {false, true}) {
    const Options options{.dtype = DType::f64, .fuse = fuse};
    Plan plan(build(true), backend(), options), other(build(false), backend(), options);
    CHECK(plan.state_names() == std::vector<std::string>{"norm.a.running_mean", "norm.a.running_var"});
    run(plan), run(other);
    for (const char* part : {".running_mean", ".running_var"}) {
      const auto values = [&](const Plan& p, const char* name) { return read(p, p.state(name + std::string(part))); };
      Values want = values(other, "norm.b");
      const Values after_a = values(other, "norm.a");
      const double start = part == std::string(".running_var") ? 1 : 0, kept = 1 - BatchNorm{}.momentum;
      for (std::size_t i = 0; i < want.size(); ++i) want[i] += kept * (after_a[i] - start);
      INFO(part << (fuse ? ", fused" : ""));
      check_close(part, values(plan, "norm.b"), want, {Values(want.size(), 1), 8}, epsilon(DType::f64));
      CHECK(values(plan, "norm.a") == values(plan, "norm.b"));
    }
  }
}

TEST_CASE("a shared parameter has one name in lists, and is found by all its names") {
  Options options{.dtype = DType::f64, .optimiser = Sgd{.momentum = 0.9}};
  Plan plan(tied(), backend(), options);
  CHECK(plan.parameter_names() == std::vector<std::string>{"table.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0",
                                                           "lstm.bias_l0", "head.bias"});
  CHECK(plan.parameter("head.weight").data == plan.parameter("table.weight").data);
  CHECK(plan.parameter_gradient("head.weight").data == plan.parameter_gradient("table.weight").data);
  CHECK(plan.optimiser_state("head.weight.velocity").data == plan.optimiser_state("table.weight.velocity").data);
  CHECK(plan.optimiser_state_names().size() == 5);
}

TEST_CASE("an update changes a shared parameter once, also if a lazily updated table is the output's matrix") {
  for (const TableUpdates updates : {TableUpdates::dense, TableUpdates::lazy}) {
    Plan plan(tied(), backend(), {.dtype = DType::f64, .optimiser = Sgd{}, .table_updates = updates});
    Values want = read(plan, plan.parameter("table.weight"));
    run(plan);
    const Values gradient = read(plan, plan.parameter_gradient("table.weight"));
    plan.update(0.5);
    for (std::size_t i = 0; i < want.size(); ++i) want[i] -= 0.5 * gradient[i];
    check_close("table", read(plan, plan.parameter("head.weight")), want, {Values(want.size(), 1), 1}, 1e-15);
  }
}

TEST_CASE("a plan with shared parameters can share them only with a plan that shares the same parameters") {
  Plan plan(many_uses(true), backend(), {.dtype = DType::f64});
  Options options{.mode = Mode::inference, .dtype = DType::f64, .share = &plan};
  Plan evaluation(many_uses(true), backend(), options), apart(many_uses(false), backend(), options);
  CHECK(evaluation.parameter("conv.c.bias").data == plan.parameter("conv.b.bias").data);
  CHECK(apart.parameter("conv.c.bias").data == plan.parameter("conv.b.bias").data);
  Plan other(many_uses(false), backend(), {.dtype = DType::f64});
  options.share = &other;
  CHECK_THROWS_WITH(Plan(many_uses(true), backend(), options),
                    ContainsSubstring("conv.b.weight is conv.a.weight here, and has its own numbers there"));
}
