// A plan binds, shares, keeps and refuses as documented. Other tests check the results, by op and by network.

#include "lamina/plan.h"

#include <climits>
#include <thread>

#include "lib/core/units/spec_passes.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"
#include "tests/support/wrapped_backend.h"

using namespace lamina::test;

namespace {

/// Pre-activation blocks after a stem. The input of a block has two readers, and a batch norm reads the sum of a block.
Graph residual(int image = 6, int blocks = 1) {
  Graph graph("residual");
  Value x = conv(graph.input({2, 3, image, image}), "stem", {.channels = 4, .kernel = 3, .pad = 1, .bias = false});
  for (int i = 0; i < blocks; ++i) {
    const std::string name = i == 0 ? "block" : "block" + std::to_string(i);
    Value y = relu(batch_norm(x, name + ".bn"), name + ".relu");
    y = conv(y, name + ".conv", {.channels = 4, .kernel = 3, .pad = 1, .bias = false});
    x = add(x, y, name + ".add");
  }
  x = relu(batch_norm(x, "bn"), "relu");
  fully_connected(global_average_pool(x, "pool"), "fc", {.outputs = 5});
  return graph;
}

/// Two branches are concatenated on channels. A slice and a convolution follow.
Graph inception() {
  Graph graph("inception");
  const Value x = conv(graph.input({2, 3, 6, 6}), "stem", {.channels = 4, .kernel = 1});
  const Value a = conv(x, "a", {.channels = 2, .kernel = 1});
  const Value b = conv(x, "b", {.channels = 3, .kernel = 3, .pad = 1});
  const Value joined = concat({a, b}, "concat");
  const Value mixed = conv(slice(joined, "slice", {.first = 1, .count = 3}), "mix", {.channels = 2, .kernel = 1});
  fully_connected(mixed, "fc", {.outputs = 5});
  return graph;
}

/// Compares values of two f64 plans of one graph that make the same calls. The bits must be equal, but with a library
/// only up to rounding, because a library may sum in another order for other strides.
void check_same_values(const Values& a, const Values& b) {
  if (!decided_by_library()) {
    CHECK(a == b);
    return;
  }
  CHECK(largest_gap(a, b) <= 1e-12 * largest_of(b));
}

/// Options for f64 with algorithms that have the same bits in every run.
Options repeatable() { return {.dtype = DType::f64, .choice = {.deterministic = true}}; }

bool runs(const Plan& plan, std::string_view node) {
  return std::ranges::any_of(plan.calls(), [&](const Call& call) {
    return plan.graph().nodes()[static_cast<std::size_t>(call.nodes.back())].name == node;
  });
}

}  // namespace

TEST_CASE("passes of a plan do not change inputs, parameters or output gradients, and repeat their results") {
  for (const Graph& graph : {residual(), inception()}) {
    Options options = repeatable();
    options.input_gradient = true;
    Plan plan(graph, backend(), options);
    const Outcome first = run(plan), second = run(plan);
    CHECK(second.output == first.output);
    CHECK(second.gradients == first.gradients);
  }
}

TEST_CASE("two plans have the same initial numbers if and only if their seeds are equal") {
  const Graph graph = residual();
  Plan a(graph, backend(), {.seed = 3}), b(graph, backend(), {.seed = 3}), c(graph, backend(), {.seed = 4});
  CHECK(read(a, a.parameter("stem.weight")) == read(b, b.parameter("stem.weight")));
  CHECK(read(a, a.parameter("stem.weight")) != read(c, c.parameter("stem.weight")));
  CHECK(read(a, a.input()) == read(b, b.input()));
}

TEST_CASE("concat and slice are views: nothing runs for them, and values are parts of the concat's memory") {
  Plan plan(inception(), backend(), {.dtype = DType::f64});
  CHECK_FALSE(runs(plan, "concat"));
  const auto* joined = plan.value("concat").as<double>();
  CHECK(plan.value("a").as<double>() == joined);
  CHECK(plan.value("b").as<double>() == joined + 2 * 36);
  CHECK(plan.value("slice").as<double>() == joined + 36);
  CHECK(plan.value("b").pitch == 5 * 36);
  CHECK(plan.gradient("b").as<double>() == plan.gradient("concat").as<double>() + 2 * 36);
}

TEST_CASE("if a backend refuses gaps between images, concat and slice copy, with the same results") {
  WrappedBackend wrapped(backend());
  wrapped.refuse_pitch = true;
  Plan copies(inception(), wrapped, repeatable());
  Plan views(inception(), backend(), repeatable());
  for (Plan* plan : {&copies, &views}) run_passes(*plan);
  CHECK(runs(copies, "concat"));
  check_same_values(read(copies, copies.output()), read(views, views.output()));
  check_same_values(read(copies, copies.parameter_gradient("stem.weight")),
                    read(views, views.parameter_gradient("stem.weight")));
}

TEST_CASE("a concat whose input is read again later has separate memory for that input's gradient") {
  Graph graph("read again");
  const Value x = conv(graph.input({1, 2, 3, 3}), "stem", {.channels = 2, .kernel = 1});
  const Value a = conv(x, "a", {.channels = 2, .kernel = 1});
  const Value joined = conv(concat({a, x}, "concat"), "mix", {.channels = 2, .kernel = 1});
  add(joined, a, "add");
  Options apart = repeatable();
  apart.fuse = false;
  apart.keep_values = true;
  Plan plan(graph, backend(), repeatable()), kept(graph, backend(), apart);
  for (Plan* p : {&plan, &kept}) run_passes(*p);
  for (const std::string& name : plan.parameter_names())
    check_same_values(read(plan, plan.parameter_gradient(name)), read(kept, kept.parameter_gradient(name)));
}

TEST_CASE("a sum shares its gradient's memory with its terms, so an add has no backward call") {
  Graph graph("join");
  const Value x = graph.input({2, 3, 4, 4});
  const Value a = conv(x, "a", {.channels = 3, .kernel = 1}), b = conv(x, "b", {.channels = 3, .kernel = 1});
  conv(add(a, b, "add"), "last", {.channels = 1, .kernel = 1});
  Plan plan(graph, backend(), {.dtype = DType::f64});
  CHECK(plan.gradient("a").data == plan.gradient("add").data);
  CHECK(plan.gradient("b").data == plan.gradient("add").data);
  const auto backward = std::count_if(plan.calls().begin() + static_cast<std::ptrdiff_t>(plan.forward_calls()),
                                      plan.calls().end(), [](const Call& call) { return call.nodes.back() == 3; });
  CHECK(backward == 0);
}

TEST_CASE("args() of a call has the tensors that the plan returns by name") {
  Graph graph("layer");
  conv(graph.input({2, 3, 4, 4}), "conv", {.channels = 4, .kernel = 3});
  Plan plan(graph, backend(), {.input_gradient = true});
  for (std::size_t i = 0; i < plan.calls().size(); ++i) {
    const Args& args = plan.args(i);
    const Call& call = plan.calls()[i];
    CHECK(wants(*call.spec, call.passes.front()));
    CHECK(args.w.at(0).data == plan.parameter("conv.weight").data);
    if (call.covers(Pass::forward)) CHECK(args.y.data == plan.output().data);
    if (call.covers(Pass::backward_data)) CHECK(args.dx.at(0).data == plan.input_gradient().data);
    if (call.covers(Pass::backward_params)) CHECK(args.dw.at(0).data == plan.parameter_gradient("conv.weight").data);
  }
  CHECK_THROWS_WITH(plan.args(plan.calls().size()), ContainsSubstring(std::to_string(plan.calls().size())));
}

TEST_CASE("a value inside a fused unit does not exist, and the error names the unit") {
  Graph graph("chains");
  Value x = graph.input({2, 3, 6, 6});
  x = relu(conv(x, "conv", {.channels = 4, .kernel = 3, .pad = 1}), "conv.relu");
  relu(batch_norm(x, "bn"), "bn.relu");
  const Plan plan(graph, backend()), unfused(graph, backend(), {.fuse = false});
  int units = 0;
  for (const std::string name : {"conv", "bn"}) {  // a backend may fuse both or not
    CHECK(unfused.value(name));
    CHECK(plan.value(name + ".relu"));
    if (plan.unit_of(name).size() == 1) continue;
    ++units;
    REQUIRE(plan.unit_of(name) == std::vector<std::string>{name, name + ".relu"});
    CHECK_THROWS_WITH(plan.value(name),
                      ContainsSubstring(name + " + " + name + ".relu") && ContainsSubstring("fuse = false"));
  }
  CHECK(units > 0);
}

TEST_CASE("stamps come before every call and after the last call") {
  Plan plan(residual(), backend(), {});
  std::vector<std::size_t> stamps;
  plan.forward([&](std::size_t i) { stamps.push_back(i); });
  CHECK(stamps.size() == plan.forward_calls() + 1);
  plan.backward([&](std::size_t i) { stamps.push_back(i); });
  CHECK(stamps.back() == plan.calls().size());
  CHECK(stamps.size() == plan.calls().size() + 2);
}

TEST_CASE("a plan that runs refuses a second caller, and its pass is unaffected") {
  Graph graph("small");
  conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3});
  Plan plan(graph, backend());
  plan.forward();
  const Values want = read(plan, plan.output());
  int refused = 0;
  plan.forward([&](std::size_t) {
    std::thread([&] {
      for (const auto& call : {&Plan::parameters_changed, static_cast<void (Plan::*)()>(&Plan::forward),
                               static_cast<void (Plan::*)()>(&Plan::backward)}) {
        try {
          (plan.*call)();
        } catch (const UsageError& error) {
          if (std::string(error.what()).find("another thread") != std::string::npos) ++refused;
        }
      }
    }).join();
  });
  CHECK(refused == 6);  // three calls, each before and after the convolution
  CHECK(read(plan, plan.output()) == want);
  plan.backward();
}

TEST_CASE("in training, parameters are prepared in every forward pass") {
  WrappedBackend wrapped(backend());
  wrapped.prepare = true;
  Plan plan(residual(), wrapped, {.dtype = DType::f64});
  for (int pass = 0; pass < 2; ++pass) {
    write(plan, plan.parameter("stem.weight"), Values(4 * 3 * 9, pass + 1.0));
    run_passes(plan);
  }
  CHECK(wrapped.faults == std::vector<std::string>{});
  CHECK(wrapped.prepared == 2 * 5);
}

TEST_CASE("in inference, parameters are prepared when a plan is made and when they change, not in a pass") {
  WrappedBackend wrapped(backend());
  wrapped.prepare = true;
  Plan plan(residual(), wrapped, {.mode = Mode::inference, .dtype = DType::f64});
  CHECK(wrapped.prepared == 5);
  plan.forward();
  plan.forward();
  CHECK(wrapped.prepared == 5);
  write(plan, plan.parameter("stem.weight"), Values(4 * 3 * 9, 1.0));
  plan.parameters_changed();
  CHECK(wrapped.prepared == 10);
  plan.forward();
  CHECK(wrapped.faults == std::vector<std::string>{});
  CHECK(wrapped.prepared_compared > 0);
}

TEST_CASE("a plan takes its predicted memory, and less if values are dropped") {
  for (const Mode mode : {Mode::training, Mode::inference}) {
    Options options{.mode = mode};
    const MemoryReport predicted = predict_memory(residual(), backend(), options);
    Plan plan(residual(), backend(), options);
    CHECK(predicted.total() == plan.memory().total());
  }
  const Graph large = residual(64, 8);  // here values need more memory than workspaces
  const auto arena = [&](Options options) {
    options.choice.workspace_limit = std::size_t{1} << 20;
    return predict_memory(large, backend(), options).arena;
  };
  CHECK(arena({.keep = Keep::cheap}) < arena({}));
  CHECK(arena({.mode = Mode::inference}) < arena({}));
}

TEST_CASE("a plan refuses wrong graphs, options and calls with helpful errors") {
  SECTION("a node that nobody reads") {
    Graph graph("loose end");
    const Value x = graph.input({1, 1, 2, 2});
    relu(x, "unread");
    relu(x, "last");
    CHECK_THROWS_MATCHES(Plan(graph, backend()), UsageError, Says("unread"));
  }
  SECTION("a graph without an op") {
    Graph graph("empty");
    graph.input({1, 1, 2, 2});
    CHECK_THROWS_WITH(Plan(graph, backend()), ContainsSubstring("computes nothing"));
  }
  SECTION("more bytes than 64 bits can sum") {
    Graph wide("wide");
    Value x = wide.input({1, INT_MAX, 1, 1});
    for (const char* name : {"a", "b"}) x = fully_connected(x, name, {.outputs = INT_MAX});
    CHECK_THROWS_AS(predict_memory(wide, backend(), {.dtype = DType::f64}), ShapeError);
    Graph many("many");
    relu(many.input({INT_MAX, 1 << 15, 1 << 15, 1}));
    CHECK_THROWS_AS(predict_memory(many, backend()), Error);  // a library may refuse it first
    CHECK_THROWS_WITH(predict_memory(many, oracle()), ContainsSubstring("many") && ContainsSubstring("2^58 bytes"));
  }
  SECTION("a choice for an unknown node") {
    Options options;
    options.choice_of["block.conw"];
    CHECK_THROWS_WITH(Plan(residual(), backend(), options),
                      ContainsSubstring("block.conw") && ContainsSubstring("block.conv"));
  }
  Plan plan(residual(), backend(), {});
  SECTION("backward without forward") {
    CHECK_THROWS_AS(plan.backward(), UsageError);
    run_passes(plan);
    CHECK_THROWS_WITH(plan.backward(), ContainsSubstring("needs a forward()"));
  }
  SECTION("backward after a forward that failed") {
    plan.forward();
    const auto fail = [](std::size_t) { throw std::runtime_error("half way"); };
    CHECK_THROWS_AS(plan.forward(fail), std::runtime_error);
    CHECK_THROWS_WITH(plan.backward(), ContainsSubstring("needs a forward()"));
  }
  SECTION("input() of a graph with two inputs") {
    Graph graph("two");
    const Value left = graph.input({1, 1, 2, 2}, "left"), right = graph.input({1, 1, 2, 2}, "right");
    add(left, right);
    const Plan two(graph, backend());
    CHECK(two.input("right"));
    CHECK_THROWS_WITH(two.input(), ContainsSubstring("2 inputs") && ContainsSubstring("left, right"));
    CHECK_THROWS_WITH(two.input("rigth"), ContainsSubstring("did you mean \"right\""));
  }
  SECTION("unknown names") {
    CHECK_THROWS_WITH(plan.parameter("stem.wieght"), ContainsSubstring("stem.weight"));
    CHECK_THROWS_WITH(plan.state("bn.mean"), ContainsSubstring("bn.running_mean"));
    CHECK_THROWS_WITH(plan.value("block.ad"), ContainsSubstring("block.add"));
    CHECK_THROWS_WITH(plan.input("data"), ContainsSubstring("input"));
    CHECK_THROWS_AS(plan.input_gradient(), UsageError);
  }
  SECTION("gradients in inference") {
    Plan inference(residual(), backend(), {.mode = Mode::inference});
    inference.forward();
    CHECK_THROWS_WITH(inference.backward(), ContainsSubstring("inference"));
    CHECK_THROWS_AS(inference.parameter_gradient("stem.weight"), UsageError);
    CHECK_THROWS_AS(inference.output_gradient(), UsageError);
  }
  SECTION("more memory than allowed") {
    auto small = make_backend("eigen", {.memory_limit = 1000});
    CHECK_THROWS_AS(Plan(residual(), *small), OutOfMemory);
  }
}

TEST_CASE("each launch of a captured pass has the results of a pass") {
  Graph graph("recorded");
  Value x = relu(conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3, .pad = 1}), "relu");
  x = max_pool(relu(batch_norm(x, "bn"), "bn.relu"), "pool", {.window = 2, .stride = 2});
  fully_connected(x, "fc", {.outputs = 5});
  const Options options{.choice = {.deterministic = true}};
  Plan recorded(graph, backend(), options), plain(graph, backend(), options);
  run_passes(plain);  // the first use of a library may make calls that cannot be captured
  std::unique_ptr<CapturedGraph> pass;
  try {
    pass = backend().device().capture([&] { run_passes(recorded); });
  } catch (const Unsupported&) {
    return;  // this device cannot capture
  }
  for (int launch = 0; launch < 2; ++launch) {
    pass->launch();
    CHECK(read(recorded, recorded.output()) == read(plain, plain.output()));
    for (const std::string& name : plain.parameter_names())
      CHECK(read(recorded, recorded.parameter_gradient(name)) == read(plain, plain.parameter_gradient(name)));
  }
}
