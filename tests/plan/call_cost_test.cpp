// The lowest possible cost of calls: bytes counted by hand, and costs compared with single ops.

#include "lib/core/plan/run/bind.h"

#include "lamina/nets.h"
#include "lib/core/plan/decisions/decisions.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

const std::vector<Pass> both{Pass::backward_params, Pass::backward_data};
constexpr double map = 96;

bool takes_two(const Op& op) {
  return std::holds_alternative<Add>(op) || std::holds_alternative<Binary>(op) || is_loss(op);
}

/// A chain of ops that runs as one unit. By default its inputs are 2x3x4x4 (96 elements). The second input of every op
/// with two inputs is the chain's last input.
struct Chain {
  Graph graph{"chain"};
  planner::Units units;

  explicit Chain(const std::vector<Op>& ops, bool input_gradient = true, std::vector<Shape> x = {}) {
    if (x.empty()) x.resize(std::ranges::any_of(ops, takes_two) ? 2 : 1, {2, 3, 4, 4});
    std::vector<Value> inputs;
    for (const Shape& shape : x) inputs.push_back(graph.input(shape, "x" + std::to_string(inputs.size())));
    Value y = inputs.front();
    for (const Op& op : ops)
      y = apply(op, takes_two(op) ? std::vector{y, inputs.back()} : std::vector{y}, "node " + std::to_string(y.id()));
    const planner::Nodes nodes(graph);
    units = planner::make_units(nodes, oracle(), {.input_gradient = input_gradient});
    planner::lower(units, nodes, oracle());
    REQUIRE(units.list.size() == 1);
  }

  Cost of(const std::vector<Pass>& passes, std::vector<bool> dx_shared = {}) const {
    const planner::Unit& unit = units.list[planner::UnitId{0}];
    dx_shared.resize(unit.x.size());
    return planner::call_cost(unit, passes, planner::Nodes(graph), units, dx_shared);
  }
  /// The number of f32 elements that the passes read and write.
  double moved(const std::vector<Pass>& passes, const std::vector<bool>& dx_shared = {}) const {
    return of(passes, dx_shared).bytes / 4;
  }
};

double bytes_of(std::span<const Call> calls) {
  double bytes = 0;
  for (const Call& call : calls) bytes += call.cost.bytes;
  return bytes;
}

/// For each pass of one op, compares the cost of its call with the cost of the pass.
void check_alone(const Op& op, const std::vector<Shape>& x) {
  const Chain chain({op}, true, x);
  for (const Pass pass : {Pass::forward, Pass::backward_params, Pass::backward_data, Pass::recompute, Pass::prepare}) {
    CAPTURE(to_string(op), to_string(pass));
    CHECK(chain.of({pass}).bytes == cost(op, x, pass).bytes);
    CHECK(chain.of({pass}).flops == cost(op, x, pass).flops);
  }
}

}  // namespace

TEST_CASE("a call of one op costs what the op costs alone") {
  const Op op = GENERATE(
      as<Op>{}, Conv{.channels = 6, .kernel = 3}, ConvTranspose{.channels = 6, .kernel = 3}, FullyConnected{5},
      FullyConnected{5, false}, MaxPool{.window = 2, .stride = 2}, AveragePool{.window = 2, .stride = 2},
      GlobalAveragePool{}, BatchNorm{}, GroupNorm{.groups = 3}, LayerNorm{}, LayerNorm{.affine = false}, Lrn{}, Relu{},
      Dropout{}, Softmax{}, Softmax{.axis = Axis::row, .log = true}, Reduce{ReduceBy::max, true, false, true},
      Reduce{ReduceBy::mean, true, false, false}, Pointwise{Function::sigmoid}, Pointwise{Function::tanh},
      Pointwise{Function::clip, 0, 6}, Pointwise{Function::hard_sigmoid, 1.0 / 6, 0.5}, Pointwise{Function::hard_swish},
      Pointwise{Function::silu}, Add{}, Binary{BinaryFunction::multiply}, ScaleShift{}, PRelu{},
      Pad{.before = 1, .after = {0, 2}}, Pad{.before = 1, .after = {0, 2}, .by = PadBy::edge}, Resize{.to = {7, 3}},
      Resize{.to = {7, 3}, .by = ResizeBy::linear}, channel_shuffle({2, 3, 4, 4}, 3), Slice{.first = 1, .count = 2},
      Slice{.axis = Axis::row, .first = 1, .count = 2, .step = 2});
  check_alone(op, std::vector<Shape>(takes_two(op) ? 2 : 1, {2, 3, 4, 4}));
}

TEST_CASE("a call of one pass of a loss or an embedding costs what the pass costs alone") {
  const Shape logits{4, 5, 2, 3}, labels{4, 1, 2, 3};
  check_alone(SoftmaxCrossEntropy{}, {logits, labels});
  check_alone(SigmoidCrossEntropy{}, {logits, logits});
  for (const int vocabulary : {3, 100}) check_alone(Embedding{.vocabulary = vocabulary, .features = 7}, {labels});
}

TEST_CASE("values between the nodes of a unit cost no bytes") {
  const Chain chain({BatchNorm{}, Relu{}});
  CHECK(chain.moved({Pass::forward}) == 2 * map + 6 + 6);
  CHECK(chain.moved({Pass::recompute}) == 2 * map + 6);
  CHECK(Chain({BatchNorm{}, Add{}, Relu{}}).moved({Pass::forward}) == 3 * map + 6 + 6);
}

TEST_CASE("a call that computes both gradients reads x and dy once") {
  CHECK(Chain({BatchNorm{}}).moved(both) == 3 * map + 6 + 6);  // x, dy, dx; scale and shift, and their gradients
  CHECK(Chain({BatchNorm{}}).moved({Pass::backward_params}) == 2 * map + 6);
}

TEST_CASE("a ReLU's mask costs a read of y if the backend says that backward reads y") {
  CHECK(Chain({BatchNorm{}, Relu{}}).moved(both) == 3 * map + 6 + 6);
  // in addition y, and the gradient of the Add's other input
  CHECK(Chain({BatchNorm{}, Add{}, Relu{}}).moved(both) == 5 * map + 6 + 6);
  CHECK(Chain({Add{}, Relu{}}).moved({Pass::backward_data}) == 4 * map);
  const Chain conv({Conv{.channels = 3, .kernel = 3, .pad = 1}, Relu{}});  // 81 weights, 3 biases
  CHECK(conv.moved({Pass::forward}) == 2 * map + 84);
  CHECK(conv.moved({Pass::backward_params}) == 3 * map + 84);
  CHECK(conv.moved({Pass::backward_data}) == 3 * map + 81);
}

TEST_CASE("a gradient that shares the memory of dy costs no bytes") {
  const Chain chain({BatchNorm{}, Add{}});
  CHECK(chain.moved(both) == 4 * map + 6 + 6);
  CHECK(chain.moved(both, {false, true}) == 3 * map + 6 + 6);
}

TEST_CASE("one call computes both gradients of a depthwise convolution, and reads x and dy once") {
  const auto eigen = make_backend("eigen", {.threads = 1});
  Graph graph("depthwise");  // 96 weights of 4x3, 8 biases
  conv(graph.input({2, 8, 3, 2}, "x"), "conv", {.channels = 8, .kernel = {4, 3}, .pad = {2, 1}, .groups = 8});
  const auto backward = [](const Graph& of, Backend& on, const Options& options) {
    std::vector<Call> calls = Plan(of, on, options).calls();
    std::erase_if(calls, [](const Call& call) { return call.passes.front() == Pass::forward; });
    return calls;
  };
  const auto chosen = [&](const Choice& its) {
    return backward(graph, *eigen, {.choice = its, .input_gradient = true});
  };
  const double y = 2 * 8 * 4 * 2;
  const std::vector<Call> joint = chosen({}), apart = chosen({.joins_gradients = false});
  REQUIRE((joint.size() == 1 && apart.size() == 2));
  CHECK(joint[0].passes == both);
  CHECK(joint[0].max_error == std::max(apart[0].max_error, apart[1].max_error));
  CHECK(joint[0].cost.bytes / 4 == 2 * map + y + 2 * 96 + 8);
  CHECK(bytes_of(apart) - bytes_of(joint) == 4 * y);
  CHECK(joint[0].cost.flops == apart[0].cost.flops + apart[1].cost.flops);

  CHECK(chosen({.algorithm = {"", "direct", ""}}).size() == 2);
  CHECK(chosen({.workspace_limit = joint[0].workspace_bytes}).size() == 1);
  CHECK(chosen({.workspace_limit = joint[0].workspace_bytes - 1}).size() == 2);
  CHECK(backward(graph, *make_backend("eigen", {.threads = 3}), {.input_gradient = true}).size() == 2);
  CHECK(backward(graph, *eigen, {}).front().passes == std::vector{Pass::backward_params});
  graph.fix("conv.weight");
  CHECK(chosen({}).size() == 1);  // the gradient of the bias is still wanted
  graph.fix("conv.bias");
  CHECK(chosen({}).front().passes == std::vector{Pass::backward_data});
}

TEST_CASE("an unwanted gradient costs nothing") {
  const Chain conv({Conv{.channels = 3, .kernel = 3, .pad = 1}, Relu{}}, false);
  CHECK(conv.moved({Pass::backward_data}) == 0);
  CHECK(conv.of({Pass::backward_data}).flops < conv.of({Pass::backward_params}).flops);
  // bytes of x, dy, y and the parameters' gradients
  CHECK(Chain({BatchNorm{}, Add{}, Relu{}}, false).moved(both) == 3 * map + 6);
}

TEST_CASE("a sum is fused with the unit before it, unless it has three inputs, or one input twice") {
  const auto units_of = [](std::size_t norms, int others) {
    Graph graph("sum");
    std::vector<Value> inputs;
    for (int i = 0; i < others; ++i) inputs.push_back(graph.input({2, 3, 4, 4}, "z" + std::to_string(i)));
    inputs.insert(inputs.end(), norms, batch_norm(graph.input({2, 3, 4, 4}, "x"), "bn"));
    apply(Add{}, inputs, "sum");
    return planned_units(graph, oracle()).size();
  };
  CHECK(units_of(1, 1) == 1);
  CHECK(units_of(2, 0) == 2);
  CHECK(units_of(1, 2) == 2);
}

TEST_CASE("the calls of a plan have their unit's spec, and cost at most as much as the single ops") {
  for (const char* net : {"resnet18", "inception_v1", "alexnet"}) {
    CAPTURE(net);
    const Graph graph = nets::build(net, {.batch = 2, .image = 64, .width_divisor = 8});
    const Plan fused(graph, oracle()), apart(graph, oracle(), {.fuse = false});
    const std::span<const Call> few(fused.calls()), many(apart.calls());
    CHECK(bytes_of(few.first(fused.forward_calls())) < bytes_of(many.first(apart.forward_calls())));
    CHECK(bytes_of(few.subspan(fused.forward_calls())) < bytes_of(many.subspan(apart.forward_calls())));

    const std::vector<PlannedUnit> units = planned_units(graph, oracle());
    for (const Plan* plan : {&fused, &apart})
      for (const Call& call : plan->calls()) {
        REQUIRE(call.spec != nullptr);
        const auto unit =
            std::ranges::find_if(units, [&](const PlannedUnit& planned) { return planned.nodes == call.nodes; });
        if (plan == &fused) REQUIRE(unit != units.end());
        if (plan == &fused) CHECK(*call.spec == unit->spec);
        CHECK(call.spec->tail.size() + 1 == call.nodes.size());
        if (call.nodes.size() > 1 || call.passes.size() > 1) continue;
        std::vector<Shape> x;
        for (const TensorSpec& tensor : call.spec->x) x.push_back(tensor.shape);
        CHECK(call.cost.bytes <= cost(call.spec->op, x, call.passes[0]).bytes);
        if (call.passes[0] == Pass::forward) CHECK(call.cost.flops == cost(call.spec->op, x, Pass::forward).flops);
      }
  }
}
