// Bytes that calls move, counted by hand, and against the costs of single ops.

#include "measure/call_cost.h"

#include "rows/rows.h"
#include "support/backend.h"
#include "support/catch.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

const std::vector<Pass> both{Pass::backward_params, Pass::backward_data};

/// A chain of ops over an input of 2x3x4x4 (96 elements) whose gradient is wanted; an Add takes a second input.
struct Chain {
  Graph graph{"chain"};
  std::vector<int> unit;
  bool input_gradient = true;

  explicit Chain(const std::vector<Op>& ops) {
    const Value x = graph.input({2, 3, 4, 4}, "x"), other = graph.input({2, 3, 4, 4}, "other");
    Value y = x;
    for (const Op& op : ops) {
      y = std::holds_alternative<Add>(op) ? apply(op, {y, other})
                                          : apply(op, {y}, "node " + std::to_string(unit.size()));
      unit.push_back(y.id());
    }
  }

  /// Elements, in f32.
  double moved(const std::vector<Pass>& passes) const {
    Call call;
    call.nodes = unit;
    call.passes = passes;
    return call_cost(call, graph, wanted_gradients(graph, input_gradient), DType::f32).bytes / 4;
  }
};

constexpr double map = 96;

}  // namespace

TEST_CASE("one pass of one op moves what its cost says") {
  const std::vector<Op> ops = {Conv{.channels = 6, .kernel = 3},
                               FullyConnected{5},
                               FullyConnected{5, false},
                               MaxPool{.window = 2, .stride = 2},
                               AveragePool{.window = 2, .stride = 2},
                               GlobalAveragePool{},
                               BatchNorm{},
                               Lrn{},
                               Relu{},
                               Dropout{},
                               Softmax{},
                               Add{},
                               Slice{.first = 1, .channels = 2}};
  for (const Op& op : ops) {
    const Chain chain({op});
    const Node& node = chain.graph.nodes().back();
    for (const Pass pass :
         {Pass::forward, Pass::backward_params, Pass::backward_data, Pass::recompute, Pass::prepare}) {
      CAPTURE(to_string(op), to_string(pass));
      CHECK(4 * chain.moved({pass}) == cost(op, input_shapes(chain.graph, node), pass).bytes);
    }
  }
}

TEST_CASE("what lies between the nodes of a unit moves nowhere") {
  const Chain chain({BatchNorm{}, Relu{}});
  CHECK(chain.moved({Pass::forward}) == 2 * map + 6 + 6);
  CHECK(chain.moved({Pass::recompute}) == 2 * map);
  const Chain joined({BatchNorm{}, Add{}, Relu{}});
  CHECK(joined.moved({Pass::forward}) == 3 * map + 6 + 6);
}

TEST_CASE("a call that computes both gradients reads x and dy once") {
  CHECK(Chain({BatchNorm{}}).moved(both) == 3 * map + 6 + 6);  // x, dy, dx; scale, shift and their gradients
  CHECK(Chain({BatchNorm{}}).moved({Pass::backward_params}) == 2 * map + 6);
}

TEST_CASE("the mask of a ReLU is y, or the input of the batch norm right before it") {
  CHECK(Chain({BatchNorm{}, Relu{}}).moved(both) == 3 * map + 6 + 6);
  CHECK(Chain({BatchNorm{}, Add{}, Relu{}}).moved(both) == 5 * map + 6 + 6);  // and y, and the other side's gradient
  CHECK(Chain({Add{}, Relu{}}).moved({Pass::backward_data}) == 4 * map);
  const Chain conv({Conv{.channels = 3, .kernel = 3, .pad = 1}, Relu{}});  // 81 weights, 3 biases
  CHECK(conv.moved({Pass::forward}) == 2 * map + 84);
  CHECK(conv.moved({Pass::backward_params}) == 3 * map + 84);
  CHECK(conv.moved({Pass::backward_data}) == 3 * map + 81);
}

TEST_CASE("the gradient of what is added is dy itself where no ReLU stands behind") {
  CHECK(Chain({BatchNorm{}, Add{}}).moved(both) == 3 * map + 6 + 6);
}

TEST_CASE("a gradient that nobody wants is not moved") {
  Chain chain({Conv{.channels = 3, .kernel = 3, .pad = 1}, Relu{}});
  chain.input_gradient = false;
  CHECK(chain.moved({Pass::backward_data}) == 0);
  Chain joined({BatchNorm{}, Add{}, Relu{}});
  joined.input_gradient = false;
  CHECK(joined.moved(both) == 3 * map + 6);  // x, dy, y, and the parameters' gradients
}

TEST_CASE("a plan moves less than its ops alone where units are fused and joins are views, and never more") {
  const auto backend = make_backend("eigen");
  for (const char* net : {"resnet18", "inception_v1", "alexnet"}) {
    CAPTURE(net);
    const Graph graph = nets::build(net, {.batch = 2, .image = 64, .width_divisor = 8});
    const GraphCost alone = graph_cost(graph, DType::f32, false);
    Options options;
    const GraphCost fused = plan_cost(Plan(graph, *backend, options));
    options.fuse = false;
    const GraphCost apart = plan_cost(Plan(graph, *backend, options));
    CHECK(fused.forward.bytes < apart.forward.bytes);
    CHECK(fused.backward.bytes < apart.backward.bytes);
    CHECK(apart.forward.bytes <= alone.forward.bytes);
    CHECK(apart.backward.bytes <= alone.backward.bytes);
    CHECK(fused.forward.flops <= alone.forward.flops);
    CHECK(fused.forward.flops > 0.99 * alone.forward.flops);
  }
}

TEST_CASE("a network's rows count the bytes of their plan") {
  Settings options;
  options.batches = {2};
  Workshop workshop(options);
  const Case c{"mnist_cnn", "eigen", DType::f32, Layout::nchw, 2};
  const Plan plan(workshop.graph(c), workshop.backend("eigen"), workshop.plan_options(c, Mode::training));
  const GraphCost moved = plan_cost(plan);
  const std::vector<Row> rows = net_rows(workshop, c);
  CHECK(rows[0].group->open()->bytes() ==
        std::vector<double>{moved.forward.bytes, moved.backward.bytes, moved.forward.bytes + moved.backward.bytes});
  CHECK(rows[3].group->open()->bytes().size() == 1);
}
