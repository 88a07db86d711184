// The backend cudnn-graph on a fake cuDNN whose plans compute their graphs: results, the engine that runs, and the
// calls of a pass.

#include "lamina/error.h"
#include "lamina/plan.h"
#include "lib/backends/common/lowering.h"
#include "tests/cudnn/bound.h"
#include "tests/cudnn/carried_plans.h"
#include "tests/cudnn/fakes/compute_graph.h"
#include "tests/io/files.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using cudnn::graph::UnitEngines;

namespace {

/// The backend cudnn-graph on a fake cuDNN and the host.
struct GraphBackend : FakeBackend {
  explicit GraphBackend(const std::string& folder = {}, const std::string& properties = {}, std::size_t version = 91900)
      : FakeBackend(version, "cudnn-graph", std::make_unique<UnitEngines>(properties, folder)) {
    serve_graphs(fake.api);
    compute_calls(fake.api);
    fake_graph().compute = compute_graph;
  }
};

std::string reason_of(GraphBackend& on, const Spec& spec, const Choice& choice = {}) {
  return on.backend.lower(spec, choice).steps.at(0).reason;
}

const Case convolution = {"", Conv{.channels = 4, .kernel = 3, .pad = 1}, {{2, 3, 5, 4}}};

const std::vector<Case> graph_cases = {
    {"", Conv{.channels = 6, .kernel = {3, 2}, .stride = {1, 2}, .pad = {1, 0}, .groups = 2}, {{2, 4, 5, 6}}},
    {"", Conv{.channels = 4, .kernel = 3, .dilation = 2, .bias = false}, {{1, 3, 7, 6}}},
    {"", Conv{.channels = 5, .kernel = 3, .pad = 1}, {{2, 3, 4, 5}}, {{Relu{}}}},
    {"", Conv{.channels = 5, .kernel = 1, .bias = false}, {{2, 3, 4, 5}}, {{Relu{}}}},
    {"", Conv{.channels = 3, .kernel = 1}, {{2, 3, 4, 5}}, {{Add{}}, {Relu{}}}, Mode::inference},
    {"", Conv{.channels = 3, .kernel = 3, .pad = 1}, {{2, 2, 4, 5}}, {{Add{}}}, Mode::inference},
    {"", FullyConnected{.outputs = 5}, {{3, 2, 3, 2}}},
    {"", FullyConnected{.outputs = 4, .bias = false}, {{3, 6, 1, 1}}, {{Relu{}}}},
    {"", BatchNorm{}, {{3, 4, 3, 2}}},
    {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Relu{}}}},
    {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Add{}}}},
    {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Add{}}, {Relu{}}}},
    {"", Relu{}, {{2, 3, 4, 5}}},
    {"", Add{}, {{2, 3, 4, 5}, {2, 3, 4, 5}}, {{Relu{}}}},
    {"", MaxPool{.window = {3, 2}, .stride = 2, .pad = {1, 0}}, {{2, 3, 6, 5}}},
    {"", MaxPool{.window = 3, .stride = 2, .rounding = Rounding::up}, {{1, 2, 6, 8}}},
    {"", AveragePool{.window = 3, .stride = 2, .pad = 1}, {{2, 3, 6, 5}}},
    {"", GlobalAveragePool{}, {{2, 3, 4, 5}}},
};

/// Types of values that this build can convert on the host.
std::vector<DType> value_types() {
#if defined(LAMINA_CUDA_ON_HOST)
  return {DType::f32, DType::f16, DType::bf16};
#else
  return {DType::f32};
#endif
}

/// If `masks`, the unit masks dx by x, and the mask of the unit's own ReLU is already applied to dy.
void check_case(const Case& c, const Conditions& conditions, std::uint64_t key, bool masks = false,
                const Choice& choice = {}) {
  GraphBackend on;
  Spec spec = spec_of(on, c, conditions);
  spec.masks_dx = spec.dy_is_masked = masks;
  CAPTURE(to_string(spec));
  Feed feed = make_feed(c, key, Fill::normal, conditions.dtype);
  Result want = reference(c, feed);
  const auto mask = [&](Values& gradient, const Values& by) {
    for (std::size_t i = 0; i < gradient.size() && masks; ++i) gradient[i] = by[i] > 0 ? gradient[i] : 0;
  };
  mask(feed.dy, want.y);
  if (masks) mask(want.dx[0], feed.x[0]);
  const Result got = run_unit(on.backend, spec, choice, feed);
  Bounds bounds = chain_bounds(c, feed);
  CHECK(fake_graph().executions >= (c.mode == Mode::inference || std::holds_alternative<Add>(c.op) ? 1 : 2));
  // cuDNN rounds to half precision several times: between graphs and calls, and in the gradient of a filter.
  const double roundings = is_half(conditions.dtype) ? 4.1 * unit_roundoff(conditions.dtype) / epsilon(DType::f32) : 0;
  bounds.y.count += roundings;
  for (auto* list : {&bounds.dx, &bounds.dw, &bounds.state})
    for (Bound& bound : *list) bound.count += roundings;
  check_result(got, want, bounds, epsilon(DType::f32), conditions.adds ? &feed : nullptr, conditions.dtype);
  for (std::size_t i = 0; i < got.state.size() && c.mode == Mode::training; ++i)
    check_close("state", got.state[i], want.state[i], bounds.state[i], epsilon(DType::f32));
}

}  // namespace

TEST_CASE("cudnn-graph: the results of engines and of the calls around them agree with the oracle") {
  std::uint64_t key = 0;
  for (const Case& c : graph_cases)
    for (const DType dtype : value_types())
      for (const Layout layout : {Layout::nchw, Layout::nhwc})
        for (const bool adds : {false, true})
          if (!adds || (c.mode == Mode::training && std::holds_alternative<Conv>(c.op)))
            check_case(c, {.dtype = dtype, .layout = layout, .adds = adds}, ++key);
  FakeBackend calls(91900, "cudnn-graph", std::make_unique<UnitEngines>("", ""));
  BoundUnit norm(calls, spec_of(calls, {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Add{}}, {Relu{}}}, Mode::inference}));
  CHECK(names_of(norm.run(Pass::forward)).back() == "ActivationForward");
}

TEST_CASE(
    "cudnn-graph: a product masks its dx by x in the graph of the gradient, or by a separate call after the graph") {
  const Case conv_relu = {"", Conv{.channels = 5, .kernel = 3, .pad = 1}, {{2, 3, 4, 5}}, {{Relu{}}}};
  const Case product = {"", FullyConnected{.outputs = 4}, {{3, 6, 1, 1}}, {{Relu{}}}};
  std::uint64_t key = 0;
  for (const Case& c : {conv_relu, product})
    for (const DType dtype : value_types())
      for (const std::string name : {"engine:31+fused", "engine:31"})
        check_case(c, {.dtype = dtype, .layout = Layout::nhwc}, ++key, true, {.algorithm = {"", "", name}});
  GraphBackend on;
  Spec spec = spec_of(on, conv_relu, {.dtype = DType::bf16, .layout = Layout::nhwc});
  spec.masks_dx = spec.dy_is_masked = true;
  const std::vector<std::string> names = on.backend.algorithms(spec, Pass::backward_data);
  CHECK(std::vector(names.begin(), names.begin() + 4) ==
        std::vector<std::string>{"engine:30+fused", "engine:31+fused", "engine:30", "engine:31"});
  CHECK(std::ranges::find(names, "engine:21+fused") == names.end());  // it is only in the fallback list
  CHECK(taken(on, spec).at(2) == "engine:30+fused");
  CHECK(on.backend.lower(spec, {}).scratch_bytes == 0);
  CHECK(taken(on, spec, {.algorithm = {"", "", "engine:7:2=5+fused"}}).at(2) == "engine:7:2=5+fused");
  spec.masks_dx = false;
  CHECK_THROWS_AS(taken(on, spec, {.algorithm = {"", "", "engine:30+fused"}}), UsageError);
}

TEST_CASE("cudnn-graph: a norm's gradient for its addend, if added to old contents, is computed from the masked dy") {
  const Case norm = {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Add{}}, {Relu{}}}};
  GraphBackend on;
  Spec spec = spec_of(on, norm, {.dtype = DType::f32, .layout = Layout::nhwc});
  CHECK(on.backend.lower(spec, {}).scratch_bytes > 0);
  spec.adds_dx[1] = true;
  CHECK(taken(on, spec) == std::vector<std::string>{"engine:31", "engine:31"});
  const Feed feed = make_feed(norm, 1, Fill::normal, DType::f32);
  const Result got = run_unit(on.backend, spec, {}, feed), want = reference(norm, feed);
  check_close("dx", got.dx[1], want.dx[1], chain_bounds(norm, feed).dx[1], epsilon(DType::f32), feed.dx[1]);
  const Case alone = {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Relu{}}}};
  CHECK(on.backend.lower(spec_of(on, alone, {.dtype = DType::f32, .layout = Layout::nhwc}), {}).scratch_bytes == 0);
}

TEST_CASE("cudnn-graph: a plan whose products mask the gradients of other units has the same gradients as without") {
  Graph graph("chain");
  Value x = relu(conv(graph.input({2, 3, 6, 6}), "a", {.channels = 4, .kernel = 3, .pad = 1}));
  x = relu(conv(x, "b", {.channels = 4, .kernel = 3, .pad = 1}));
  relu(fully_connected(relu(conv(x, "c", {.channels = 2, .kernel = 3})), "d", {.outputs = 3}));
  GraphBackend on;
  const auto gradient = [&](bool keep_values) {
    Plan plan(graph, on.backend, {.layout = Layout::nhwc, .keep_values = keep_values});
    for (const auto& [tensor, number] : {std::pair(plan.input(), 0.7F), {plan.output_gradient(), 1.3F}})
      for (std::int64_t i = 0; i < tensor.shape.count(); ++i)
        static_cast<float*>(tensor.data)[i] = number * static_cast<float>(i % 5 - 2);
    plan.forward();
    plan.backward();
    const Tensor dw = plan.parameter_gradient("a.weight");
    const auto* const begin = static_cast<const float*>(dw.data);
    return std::vector<float>(begin, begin + dw.shape.count());
  };
  const std::vector<float> masked = gradient(false);
  CHECK(masked == gradient(true));
  CHECK(std::ranges::any_of(masked, [](float each) { return each != 0; }));
}

TEST_CASE("cudnn-graph: engines are algorithms, and the first that math, determinism and workspace allow is taken") {
  GraphBackend on;
  const Spec spec = spec_of(on, convolution);
  CHECK(on.backend.algorithms(spec, Pass::forward).at(0) == "engine:31");
  CHECK(taken(on, spec) == std::vector<std::string>{"engine:31", "engine:31", "engine:31"});
  CHECK(taken(on, spec, {.math = Math::tf32}).at(0) == "engine:30");
  CHECK(on.backend.lower(spec, {.math = Math::tf32}).steps[0].math == Math::tf32);
  CHECK_FALSE(on.backend.lower(spec, {.math = Math::tf32}).steps[0].deterministic);
  CHECK(taken(on, spec, {.deterministic = true, .math = Math::tf32}).at(0) == "engine:31");
  CHECK_THAT(reason_of(on, spec),
             ContainsSubstring("engine:30: takes tensor cores") && ContainsSubstring("the first within the limits"));
  const Spec half = spec_of(on, convolution, {.dtype = DType::bf16});
  CHECK(taken(on, half).at(0) == "engine:30");  // products of two halves are exact in f32
  CHECK_THAT(reason_of(on, half), ContainsSubstring("tensor_core, nondeterministic, runtime_compilation"));
  CHECK(taken(on, spec, {.workspace_limit = 8191}).at(0) == "implicit_gemm");
  CHECK_THROWS_MATCHES(on.backend.lower(spec, {.max_error = 1e-3}), Unsupported, Says("engine:31", "no bound"));
  CHECK_THROWS_MATCHES(on.backend.lower(spec, {.algorithm = {"engine:30", "", ""}}), Unsupported, Says("tensor cores"));
}

TEST_CASE("cudnn-graph: an engine that does not finalise is skipped with its reason, and refused if it was named") {
  GraphBackend on;
  const Spec spec = spec_of(on, convolution, {.dtype = DType::bf16});
  fake_graph().refused_engine = 30;
  fake_graph().last_error = "no such kernel";
  CHECK(taken(on, spec).at(0) == "engine:31");
  CHECK_THAT(reason_of(on, spec), ContainsSubstring("engine:30: ") && ContainsSubstring("no such kernel"));
  CHECK_THROWS_MATCHES(on.backend.lower(spec, {.algorithm = {"engine:30", "", ""}}), Unsupported,
                       Says("engine:30", "no such kernel"));
}

TEST_CASE("cudnn-graph: an engine can be named with its knobs, and a bad name is refused with the reason") {
  GraphBackend on;
  const Spec spec = spec_of(on, convolution);
  const auto named = [&](const std::string& name) { return taken(on, spec, {.algorithm = {name, "", ""}}).at(0); };
  for (const std::string name : {"engine:31", "engine:7", "engine:7:tile_size=5", "engine:7:2=5:47=1"})
    CHECK(named(name) == name);
  CHECK_THROWS_MATCHES(named("engine:99"), Unsupported, Says("engine:99", "no such engine"));
  CHECK_THROWS_MATCHES(named("engine:7:2=99"), Unsupported, Says("engine:7:2=99", "knob out of range"));
  for (const std::string bad : {"engine:", "engine:x", "engine:7:tile_size", "engine:7:nothing=1", "engine:7:2=x"})
    CHECK_THROWS_MATCHES(named(bad), UsageError, Says("names no engine"));
  CHECK_THROWS_AS(named("motor:7"), UsageError);
  const Spec relu = spec_of(on, {"", Relu{}, {{1, 2, 3, 3}}});
  CHECK(taken(on, relu, {.algorithm = {"direct", "", "engine:31"}}) ==
        std::vector<std::string>{"direct", "direct", "engine:31"});
}

TEST_CASE("cudnn-graph: a unit without an engine runs by cudnn's calls, and the reason says why") {
  GraphBackend on;
  const auto first = [&](const Spec& spec, const std::string& why) {
    CHECK_THAT(reason_of(on, spec), ContainsSubstring(why));
    return taken(on, spec).at(0);
  };
  CHECK(first(spec_of(on, convolution, {.dtype = DType::f64}), "f32, f16 or bf16") == "implicit_gemm");
  CHECK(first(spec_of(on, convolution, {.dtype = DType::f32, .pitched = true}), "gaps") == "implicit_gemm");
  CHECK(taken(on, spec_of(on, {"", Softmax{}, {{2, 4, 1, 1}}})).at(0) == "direct");
  Spec norm = spec_of(on, {"", BatchNorm{}, {{2, 3, 4, 4}}}, {.dtype = DType::f32, .adds = true});
  CHECK(taken(on, norm) == std::vector<std::string>{"engine:31", "direct"});
  CHECK_THAT(on.backend.lower(norm, {}).steps.at(1).reason, ContainsSubstring("cannot add"));
  CHECK_THAT(on.backend.describe(),
             ContainsSubstring("engines of its graphs for conv") && ContainsSubstring("other ops as in cudnn"));
}

TEST_CASE("cudnn-graph: a max pool's gradient can use an engine only if its forward pass uses an engine") {
  GraphBackend on;
  const Spec pool = spec_of(on, {"", MaxPool{.window = 2, .stride = 2}, {{1, 2, 4, 4}}});
  CHECK(taken(on, pool) == std::vector<std::string>{"engine:31", "engine:31", "engine:31"});
  CHECK(on.backend.lower(pool, {}).saved_bytes == 8);
  const Choice forward_by_call{.algorithm = {"direct", "", ""}};
  CHECK(taken(on, pool, forward_by_call) == std::vector<std::string>{"direct", "direct", "direct"});
  CHECK_THROWS_AS(on.backend.lower(pool, {.algorithm = {"direct", "", "engine:31"}}), UsageError);
}

TEST_CASE("cudnn-graph: a pass of a plan, captured or not, only executes: no new descriptors, no allocation, no wait") {
  const bool captured = GENERATE(false, true);
  Graph graph("all");
  Value x = relu(conv(graph.input({2, 3, 8, 8}), "conv", {.channels = 4, .kernel = 3, .pad = 1}));
  x = relu(add(batch_norm(conv(x, "conv2", {.channels = 4, .kernel = 3, .pad = 1, .bias = false}), "bn"), x));
  x = max_pool(x, "max", {.window = 3, .stride = 2});
  fully_connected(global_average_pool(x), "fc", {.outputs = 3});
  GraphBackend on;
  {
    Plan plan(graph, on.backend, {.dtype = GENERATE(DType::f32, DType::bf16), .layout = Layout::nhwc});
    for (int i = 0; i < 2; ++i) {
      const int allocations = on.log.device.allocations, made = on.fake.made;
      fake_graph().executions = 0;
      fake_graph().in_pass = true;
      const auto pass = [&](const std::function<void()>& work) {
        captured ? void(on.log.device.capture(work)) : work();
      };
      pass([&] { plan.forward(); });
      CHECK(fake_graph().executions == 6);
      pass([&] { plan.backward(); });
      fake_graph().in_pass = false;
      // The first convolution has no dx, and the norm's gradients are one graph.
      CHECK(fake_graph().executions == 6 + 5 + 5 - 2);
      CHECK((fake_graph().strays == 0 && on.fake.made == made));
      CHECK((on.log.device.allocations == allocations && on.log.device.waits == 0));
    }
  }
}

TEST_CASE("cudnn-graph: the error of a failing engine ends with cuDNN's last message, and other engines still work") {
  GraphBackend on;
  Graph graph("one");
  relu(graph.input({2, 3, 8, 8}));
  Plan plan(graph, on.backend, {.mode = Mode::inference});
  fake_graph().last_error = "an illegal instruction";
  fake_graph().failing_call = fake_graph().calls + 1;
  fake_graph().failure = 5000;
  CHECK_THROWS_MATCHES(plan.forward(), DeviceError, Says("cudnnBackendExecute", "an illegal instruction"));
  CHECK_NOTHROW(plan.forward());
}

TEST_CASE(
    "cudnn-graph: without a device, a plan's memory is exact from device properties, and without them only a bound") {
  Graph graph("one");
  conv(graph.input({1, 2, 8, 8}), "conv", {.channels = 2, .kernel = 3});
  GraphBackend with({}, R"({"driverVer": 13000})");
  with.log.unavailable = "no driver";
  const MemoryReport known = predict_memory(graph, with.backend);
  CHECK(known.workspace_exact);
  CHECK(known.workspace == FakeGraph::workspace_bytes);
  CHECK_FALSE(fake_graph().crashed);
  GraphBackend without;
  without.log.unavailable = "no driver";
  CHECK_FALSE(predict_memory(graph, without.backend).workspace_exact);
  CHECK_THAT(reason_of(without, spec_of(without, convolution)), ContainsSubstring("neither a device nor"));
  CHECK(fake_graph().plans_made == 0);
  GraphBackend old({}, "{}", 91000);
  old.log.unavailable = "no driver";
  CHECK_THAT(reason_of(old, spec_of(old, convolution)), ContainsSubstring("give cuDNN 9.11 or later"));
  old.log.unavailable = "";
  CHECK(taken(old, spec_of(old, convolution)).at(0) == "engine:31");
}

TEST_CASE("cudnn-graph: plans are kept for each device, and a damaged plan is reported once and made anew") {
  const Folder folder;
  const std::string plans = folder / "plans";
  const auto lower = [&](std::string* reason = nullptr) {
    GraphBackend on(plans);
    const Lowered lowered = on.backend.lower(spec_of(on, convolution), {});
    if (reason != nullptr)
      for (const Lowered::Step& step : lowered.steps) *reason += step.reason + "\n";
    CHECK_THAT(on.backend.describe(), ContainsSubstring("plans in " + plans));
    return std::pair(fake_graph().plans_made, fake_graph().plans_loaded);
  };
  CHECK(lower() == std::pair(3, 0));
  CHECK(lower() == std::pair(0, 3));
  for (const auto& file : std::filesystem::directory_iterator(plans)) test::write(file.path(), "x");
  std::string reasons;
  CHECK(lower(&reasons) == std::pair(3, 0));
  const std::size_t at = reasons.find("is damaged");
  CHECK(at != std::string::npos);
  CHECK(reasons.find("is damaged", at + 1) == std::string::npos);
  CHECK(lower() == std::pair(0, 3));
  test::write(folder / "file", "x");
  CHECK_THROWS_MATCHES(UnitEngines("", folder / "file"), FileError, Says("not a folder for plans"));
}

TEST_CASE("cudnn-graph: each plan of a folder runs by itself, and the line of a refused plan has the reason") {
  const Folder folder;
  const std::string plans = folder / "plans";
  GraphBackend on(plans);
  on.backend.lower(spec_of(on, convolution), {});
  on.backend.lower(spec_of(on, {"", BatchNorm{}, {{3, 4, 3, 2}}, {{Add{}}, {Relu{}}}}), {});
  cudnn::Session session(make_host_machine(on.log), [&]() -> const cudnn::Api& { return on.fake.api; });
  fake_graph().executions = 0;
  const auto lines = [&] { return run_carried_plans(session, plans); };
  for (const std::string& line : lines())
    CHECK((line.find(".plan, engine 31 ") != line.npos && line.ends_with(": yes")));
  CHECK(fake_graph().executions == 5);
  fake_graph().failing_call = fake_graph().calls + 12;
  CHECK(std::ranges::count_if(lines(), [](const std::string& line) { return line.ends_with(": yes"); }) == 4);
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(plans)) files.push_back(file.path());
  std::ranges::sort(files);
  test::write(files[0], "x");
  std::string complaint;
  cudnn::graph::KeptPlans(plans).keep(key_in(contents(files[1])), "plan of fake 9.28.0: engine 30.", complaint);
  CHECK_THAT(lines().at(0), ContainsSubstring(": no, it is damaged"));
  CHECK_THAT(lines().at(1), ContainsSubstring(": no, ") && ContainsSubstring("a plan of another version"));
  CHECK(lines().at(2).ends_with(": yes"));
}
