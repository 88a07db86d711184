// Operation graphs of units, execution plans, and the folder of plans: on a table of fakes, and on a fake library.

#include "lamina/cudnn_engines.h"
#include "lamina/error.h"
#include "lib/backends/cudnn/graph/kept_plans.h"
#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/cudnn/graph/plans.h"
#include "tests/cudnn/fakes/fake_graph.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::cudnn;
using namespace lamina::cudnn::graph;
using test::fake_graph;
using test::Folder;
using test::said_by;
using Numbers = std::vector<std::int64_t>;
using Object = test::FakeGraph::Object;

namespace {

const Shape picture{2, 8, 9, 7};

/// The last unit of the graph that `build` makes from an input.
template <class Build>
Spec last_unit(const Build& build, Options options = {}) {
  Graph graph("one");
  build(graph.input(picture));
  options.input_gradient = true;
  return cudnn_graph_units(graph, options).back().spec;
}

Value conv_add_relu(Value x) { return relu(add(conv(x, "conv", {.channels = 8, .kernel = 3, .pad = 1}), relu(x))); }

/// The operations of a pass's graph, as the strict fake received them.
std::vector<Object> told(const Spec& spec, Pass pass) {
  const Api api = test::fake_graph_api();
  make(Target(api, "{}"), *operation_graph_of(spec, pass));
  CHECK(fake_graph().created == fake_graph().destroyed);
  return fake_graph().last_of_kind.at(operation_graph).others.at(graph_operations);
}

std::int64_t id_of(const Object& operation, int attribute) {
  return operation.others.at(attribute).at(0).numbers.at(tensor_id).at(0);
}

const Object& tensor_of(std::int64_t id) { return fake_graph().tensors.at(id); }

std::vector<int> kinds(const std::vector<Object>& operations) {
  std::vector<int> found;
  for (const Object& each : operations) found.push_back(each.kind);
  return found;
}

const std::string fakes = LAMINA_TEST_FAKES;
const CudnnEngine thirty{30, false, {}, {{"tile_size", 5, 2}}, 0};

}  // namespace

TEST_CASE("conv + bias + add + ReLU is a chain of four operations with f32 tensors between them") {
  const DType dtype = GENERATE(DType::f32, DType::f16, DType::bf16);
  const Spec spec = last_unit(conv_add_relu, {.mode = Mode::inference, .dtype = dtype, .layout = Layout::nhwc});
  const std::vector<Object> chain = told(spec, Pass::forward);
  REQUIRE(kinds(chain) ==
          std::vector<int>{operation_forward, operation_pointwise, operation_pointwise, operation_pointwise});
  const Numbers type = {dtype == DType::f32   ? cudnn::data_type::f32
                        : dtype == DType::f16 ? cudnn::data_type::f16
                                              : cudnn::data_type::bf16};
  for (const std::int64_t id : {id_x, id_w, id_addend, id_y}) CHECK(tensor_of(id).numbers.at(tensor_data_type) == type);
  CHECK(tensor_of(id_bias).numbers.at(tensor_data_type) == Numbers{cudnn::data_type::f32});
  CHECK(tensor_of(id_bias).numbers.at(tensor_dimensions) == Numbers{1, 8, 1, 1});
  CHECK(tensor_of(id_y).numbers.at(tensor_strides) == Numbers{504, 1, 56, 8});

  std::int64_t carried = id_of(chain[0], forward_alpha + result);
  const std::vector<std::int64_t> added = {id_bias, id_addend};
  for (std::size_t i = 1; i < chain.size(); ++i) {
    CHECK(tensor_of(carried).numbers.at(tensor_is_virtual) == Numbers{1});
    CHECK(tensor_of(carried).numbers.at(tensor_data_type) == Numbers{cudnn::data_type::f32});
    CHECK(id_of(chain[i], operation_pointwise_x) == carried);
    if (i < 3) CHECK(id_of(chain[i], operation_pointwise_b) == added[i - 1]);
    carried = id_of(chain[i], operation_pointwise_y);
  }
  CHECK(carried == id_y);
  CHECK(tensor_of(id_y).numbers.count(tensor_is_virtual) == 0);
  CHECK(chain[3].others.at(operation_pointwise_form)[0].numbers.at(pointwise_form) == Numbers{pointwise_relu});
}

TEST_CASE("a bias as the last operation writes y, and a convolution without a bias writes y itself") {
  const auto conv_alone = [](bool bias) {
    return last_unit([&](Value x) { return conv(x, "conv", {.channels = 4, .kernel = 1, .bias = bias}); });
  };
  const std::vector<Object> with = told(conv_alone(true), Pass::forward);
  REQUIRE(with.size() == 2);
  CHECK(id_of(with[1], operation_pointwise_y) == id_y);
  const std::vector<Object> without = told(conv_alone(false), Pass::forward);
  REQUIRE(without.size() == 1);
  CHECK(id_of(without[0], forward_alpha + result) == id_y);
}

TEST_CASE(
    "gradients are added to old contents if the unit demands it, but a half-precision filter gradient always "
    "overwrites") {
  const DType dtype = GENERATE(DType::f32, DType::bf16);
  Spec spec = last_unit([](Value x) { return conv(x, "conv", {.channels = 4, .kernel = 3}); }, {.dtype = dtype});
  const auto beta_of = [&](Pass pass, int first) { return told(spec, pass).at(0).scalars.at(first + beta); };
  CHECK(beta_of(Pass::backward_data, backward_data_alpha) == 0);
  CHECK(beta_of(Pass::backward_params, backward_filter_alpha) == 0);
  spec.adds_dx = {true};
  spec.adds_dw = true;
  CHECK(beta_of(Pass::backward_data, backward_data_alpha) == 1);
  CHECK(beta_of(Pass::backward_params, backward_filter_alpha) == (dtype == DType::f32 ? 1 : 0));
}

TEST_CASE("a product masks its dx if no other op reads the ReLU before it, and in nhwc one graph makes and masks dx") {
  Graph graph("chain");
  Value x = relu(conv(graph.input({2, 3, 9, 9}), "a", {.channels = 4, .kernel = 3, .pad = 1}));
  x = relu(conv(x, "b", {.channels = 4, .kernel = 3, .pad = 1}));
  const Value c = relu(conv(x, "c", {.channels = 4, .kernel = 3, .pad = 1}));
  const Value two = relu(add(c, x));  // b has two readers, and the reader of c is no product
  fully_connected(relu(fully_connected(two, "d", {.outputs = 4})), "e", {.outputs = 3});
  const auto masking = [&](const Options& options) {
    std::string flags;
    for (const PlannedUnit& unit : cudnn_graph_units(graph, options))
      flags += unit.spec.masks_dx ? unit.spec.dy_is_masked ? 'b' : 'r' : unit.spec.dy_is_masked ? 'p' : '-';
    return flags;
  };
  CHECK(masking({.layout = Layout::nhwc}) == "pr--pr");
  CHECK(masking({.dtype = DType::f64, .layout = Layout::nhwc}) ==
        "-----------");            // f64 has no graphs, so cudnn's calls run
  CHECK(masking({}) == "----pr");  // fully connected ops have an engine in both layouts
  CHECK(masking({.layout = Layout::nhwc, .keep_values = true}) == "------");
  CHECK(masking({.mode = Mode::inference, .layout = Layout::nhwc}) == "------");

  const Spec spec = cudnn_graph_units(graph, {.layout = Layout::nhwc})[1].spec;
  REQUIRE(cudnn_graphs(spec).size() == 4);
  CHECK(cudnn_graph(cudnn_graphs(spec)[2].first, Pass::backward_data) != cudnn_graph(spec, Pass::backward_data));
  const std::vector<Object> chain = told(spec, Pass::backward_data);
  REQUIRE(kinds(chain) == std::vector<int>{operation_backward_data, operation_pointwise});
  const std::int64_t between = id_of(chain[0], backward_data_alpha + image);
  CHECK(tensor_of(between).numbers.at(tensor_is_virtual) == Numbers{1});
  CHECK(id_of(chain[1], operation_pointwise_dy) == between);
  CHECK(id_of(chain[1], operation_pointwise_x) == id_x);
  CHECK(id_of(chain[1], operation_pointwise_dx) == id_dx);
}

TEST_CASE("a batch norm with Add and ReLU has one graph for forward and one graph for all gradients") {
  const Spec spec = last_unit([](Value x) { return relu(add(lamina::batch_norm(x, "bn"), relu(x))); },
                              {.dtype = DType::bf16, .layout = GENERATE(Layout::nchw, Layout::nhwc)});
  REQUIRE(cudnn_graphs(spec).size() == 2);
  CHECK(cudnn_graphs(spec)[1].second == Pass::backward_params);
  CHECK(kinds(told(spec, Pass::forward)) ==
        std::vector<int>{operation_norm_forward, operation_pointwise, operation_pointwise});
  CHECK(tensor_of(id_epsilon).numbers.at(tensor_is_by_value) == Numbers{1});
  CHECK(tensor_of(id_w).numbers.at(tensor_data_type) == Numbers{cudnn::data_type::f32});
  const std::vector<Object> backward = told(spec, Pass::backward_params);
  if (spec.y.layout == Layout::nchw) {  // the mask is a separate call
    REQUIRE(kinds(backward) == std::vector<int>{operation_norm_backward});
    CHECK(id_of(backward[0], norm_backward_dy) == id_dy);
    return;
  }
  REQUIRE(kinds(backward) == std::vector<int>{operation_pointwise, operation_pointwise, operation_norm_backward});
  CHECK(id_of(backward[0], operation_pointwise_x) == id_y);
  CHECK(tensor_of(id_zero).numbers.at(tensor_is_by_value) == Numbers{1});
  CHECK(id_of(backward[1], operation_pointwise_x) == id_dy);
  CHECK(id_of(backward[1], operation_pointwise_b) == id_of(backward[0], operation_pointwise_y));
  CHECK(id_of(backward[1], operation_pointwise_y) == id_masked);  // also the gradient of the addend
  CHECK(id_of(backward[2], norm_backward_dy) == id_masked);
  CHECK(id_of(backward[2], norm_backward_dscale) == id_dw);
  CHECK(id_of(backward[2], norm_backward_dx) == id_dx);
}

TEST_CASE("a max pool keeps its indices in training, and has no padding at the end if its windows fill the image") {
  const Mode mode = GENERATE(Mode::training, Mode::inference);
  const Spec spec =
      last_unit([](Value x) { return max_pool(x, "pool", {.window = 3, .stride = 2, .rounding = Rounding::up}); },
                {.mode = mode});
  const std::vector<Object> forward = told(spec, Pass::forward);
  CHECK((forward.at(0).others.count(resample_forward_index) == 1) == (mode == Mode::training));
  const auto& form = forward[0].others.at(resample_forward_form)[0].numbers;
  CHECK(form.at(resample_window) == Numbers{3, 1, 3, 1});
  CHECK(form.at(resample_post_paddings) == Numbers{0, 1, 0, 1});  // 0 / 1: windows fill 9 rows and 7 columns
  if (mode == Mode::training) CHECK(told(spec, Pass::backward_data).at(0).kind == operation_resample_backward);
}

TEST_CASE("a fully connected op is a convolution of one pixel, and ReLU and Add have graphs of one or two operations") {
  const Spec product = last_unit([](Value x) { return fully_connected(x, "fc", {.outputs = 5}); });
  told(product, Pass::backward_params);
  CHECK(tensor_of(id_x).numbers.at(tensor_dimensions) == Numbers{2, 504, 1, 1});
  CHECK(tensor_of(id_w).numbers.at(tensor_dimensions) == Numbers{5, 504, 1, 1});
  CHECK(tensor_of(id_y).numbers.at(tensor_dimensions) == Numbers{2, 5, 1, 1});
  const Spec sum = last_unit([](Value x) { return relu(add(max_pool(x, "p", {.window = 1, .stride = 1}), x)); });
  CHECK(told(sum, Pass::forward).size() == 2);
  CHECK(told(sum, Pass::backward_data).at(0).others.count(operation_pointwise_dx) == 1);
  CHECK(told(last_unit([](Value x) { return relu(max_pool(x, "p", {.window = 1, .stride = 1})); }), Pass::forward)
            .size() == 1);
}

TEST_CASE("the texts of two graphs differ if and only if the graphs differ") {
  const auto line = [](const Options& options, const Conv& op) {
    return cudnn_graph(last_unit([&](Value x) { return conv(x, "conv", op); }, options), Pass::forward);
  };
  const Conv op{.channels = 8, .kernel = 3};
  const std::string usual = line({}, op);
  CHECK(usual == line({.seed = 7}, op));
  CHECK(usual != line({.dtype = DType::f16}, op));
  CHECK(usual != line({.layout = Layout::nhwc}, op));
  for (const Conv& other :
       {Conv{.channels = 16, .kernel = 3}, Conv{.channels = 8, .kernel = {3, 1}},
        Conv{.channels = 8, .kernel = 3, .stride = {1, 2}}, Conv{.channels = 8, .kernel = 3, .pad = 1},
        Conv{.channels = 8, .kernel = 3, .dilation = {2, 1}}, Conv{.channels = 8, .kernel = 3, .groups = 2},
        Conv{.channels = 8, .kernel = 3, .bias = false}}) {
    INFO(to_string(Op(other)));
    CHECK(usual != line({}, other));
  }
}

TEST_CASE("a unit without a graph is Unsupported, and a pass without a graph is a UsageError that names the pass") {
  const Spec unit = last_unit([](Value x) { return lamina::softmax(x); });
  CHECK_THROWS_MATCHES(cudnn_graph(unit, Pass::forward), Unsupported, Says("softmax", "no graph"));
  const Spec plain = last_unit([](Value x) { return conv(x, "conv", {.channels = 4, .kernel = 1}); });
  CHECK_THROWS_MATCHES(cudnn_graph(plain, Pass::prepare), UsageError, Says("conv", "prepare"));
  const Spec f64 = last_unit([](Value x) { return conv(x, "c", {.channels = 4, .kernel = 1}); }, {.dtype = DType::f64});
  CHECK_THROWS_MATCHES(cudnn_graph(f64, Pass::forward), Unsupported, Says("f32, f16 or bf16"));
  Spec pool = last_unit([](Value x) { return max_pool(x, "pool", {.window = 3, .stride = 2}); });
  pool.adds_dx = {true};
  CHECK_THROWS_MATCHES(cudnn_graph(pool, Pass::backward_data), Unsupported, Says("cannot add"));
}

TEST_CASE("each failing call in making a plan ends in an error that names the call, and no descriptor is leaked") {
  const Spec spec = last_unit(conv_add_relu, {.mode = Mode::inference});
  int calls = 0;
  for (int call = 0; call <= calls; ++call) {
    const Api api = test::fake_graph_api();
    const Target device(api, "{}");
    const auto made = [&] { make_plan(device, operation_graph_of(spec, Pass::forward), thirty); };
    fake_graph().failing_call = call;
    CAPTURE(call);
    if (call == 0) {
      made();
      calls = fake_graph().calls;
      CHECK(calls > 60);
      CHECK(fake_graph().plans_made == 1);
    } else if (call > 3) {  // the first three calls are Target's
      CHECK_THROWS_MATCHES(made(), DeviceError, Says("cudnnBackend", "what the fake has to say"));
    }
    CHECK(fake_graph().created == fake_graph().destroyed + 1);
    CHECK_FALSE(fake_graph().crashed);
  }
}

TEST_CASE("an unknown engine, a knob out of range and a plan that does not finalize have errors that say so") {
  const Api api = test::fake_graph_api();
  const Target device(api, "{}");
  const PartRef graph = operation_graph_of(last_unit(conv_add_relu, {.mode = Mode::inference}), Pass::forward);
  CudnnEngine engine = thirty;
  engine.index = 99;
  CHECK_THROWS_MATCHES(make_plan(device, graph, engine), DeviceError, Says("no such engine"));
  engine = thirty;
  engine.knobs[0].value = 99;
  CHECK_THROWS_MATCHES(make_plan(device, graph, engine), DeviceError, Says("knob out of range"));
  fake_graph().refused_engine = 30;
  CHECK_THROWS_AS(make_plan(device, graph, thirty), Unsupported);
  const auto load = [&](std::string text) { make(device, {execution_plan, {{plan_json, std::move(text)}}}); };
  CHECK_THROWS_MATCHES(load("plan of fake 9.28.0: engine 1."), DeviceError, Says("another version"));
  CHECK_THROWS_MATCHES(load("plan of fake 9.19.0: eng"), DeviceError, Says("not JSON"));
  CHECK_FALSE(fake_graph().crashed);
}

TEST_CASE("the error for a cuDNN without one of its parts names the part, and what the part may need") {
  Api api = test::fake_graph_api();
  api.unopened = "libcuda.so.1: cannot open shared object file";
  fake_graph().failing_call = 3;
  CHECK_THROWS_MATCHES(Target(api, "{}"), LoadError, Says("libcuda.so.1", "driver's library", "stubs/libcuda.so"));
}

TEST_CASE("a plan is made once and then loaded from its folder, for the same graph, engine, knobs and device") {
  const CudnnEngines cudnn(fakes + "/graph", "{\"driverVer\": 13000, \"maxGridSize\": [1, 2], \"smClockRateKHz\": 5}");
  const Folder folder;
  const std::string plans = folder.file("plans");
  const Spec spec = last_unit(conv_add_relu, {.mode = Mode::inference});
  const auto build = [&](const Spec& of, const CudnnEngine& engine) {
    const CudnnPlan plan = cudnn.build(of, Pass::forward, engine, plans);
    CHECK(plan.refused.empty());
    CHECK(plan.complaint.empty());
    CHECK(plan.workspace_bytes == 8192);
    return plan.from_folder;
  };
  CHECK_FALSE(build(spec, thirty));
  CHECK(build(spec, thirty));
  CudnnEngine other = thirty;
  other.knobs[0].value = 6;
  CHECK_FALSE(build(spec, other));
  CHECK_FALSE(build(last_unit(conv_add_relu, {.mode = Mode::inference, .dtype = DType::f16}), thirty));
  CHECK(build(spec, other));
}

TEST_CASE("a plan's file that is cut, changed or of another key is replaced, and the complaint names the file") {
  const Folder folder;
  const KeptPlans kept(folder / "plans");
  const std::string key = "cuDNN 9.19.0\ngraph\nengine 30", plan = "{\"plan\":\n1}";
  const auto found = [&] {
    std::string complaint;
    const std::optional<std::string> text = kept.find(key, complaint);
    CHECK(text.has_value() == complaint.empty());
    return std::pair(text, complaint);
  };
  std::string complaint;
  CHECK_FALSE(kept.find(key, complaint));
  kept.keep(key, plan, complaint);
  CHECK(complaint.empty());
  CHECK(found().first == plan);
  const std::string whole = test::contents(kept.file(key));
  for (std::size_t length = 0; length < whole.size(); ++length) {
    test::write(kept.file(key), whole.substr(0, length));
    CHECK_THAT(found().second, ContainsSubstring("is damaged"));
    std::string changed = whole;
    changed[length] = static_cast<char>(changed[length] ^ 1);
    test::write(kept.file(key), changed);
    CHECK_THAT(found().second, ContainsSubstring("is damaged"));
  }
  kept.keep(key + "1", plan, complaint);
  std::filesystem::copy_file(kept.file(key + "1"), kept.file(key), std::filesystem::copy_options::overwrite_existing);
  CHECK_THAT(found().second, ContainsSubstring("another key"));
  kept.keep(key, plan, complaint);
  CHECK(found().first == plan);
  CHECK(complaint.empty());
}

TEST_CASE("a plan that cannot be written gives a complaint, and a file in place of the folder is a FileError") {
  const Folder folder;
  test::write(folder / "file", "x");
  CHECK_THROWS_MATCHES(KeptPlans(folder / "file"), FileError, Says("not a folder for plans"));
  const KeptPlans kept(folder / "plans");
  std::filesystem::create_directory(kept.file("key"));  // where the plan's file would be
  std::string complaint;
  kept.keep("key", "plan", complaint);
  CHECK_THAT(complaint, ContainsSubstring("not a regular file"));
}

TEST_CASE("a plan's key has the properties that must be equal on the loading device, and no others") {
  const std::string text = R"({"deviceName": "a, b", "driverVer":13000, "maxGridSize": [1, 2,3], "smClockRateKHz": 5})";
  CHECK_THAT(plan_properties(text), ContainsSubstring("driverVer 13000") && ContainsSubstring("maxGridSize [1,2,3]") &&
                                        !ContainsSubstring("Clock") && !ContainsSubstring("a, b"));
}
