// Rows layer/...: each distinct layer of a network by itself, per pass and algorithm, as a plan of one node. Parameter
// gradients are overwritten; x and dy are drawn once.

#include <fmt/format.h>

#include <algorithm>

#include "lamina/error.h"
#include "rows.h"
#include "stopwatch.h"

namespace lamina::bench {
namespace {

/// A node and its inputs as a graph of its own.
Graph alone(const Graph& graph, const Node& node) {
  Graph one(node.name);
  std::vector<Value> x;
  for (const Shape& shape : input_shapes(graph, node)) x.push_back(one.input(shape, fmt::format("x{}", x.size())));
  apply(node.op, x, node.name);
  return one;
}

/// The unit of work that a plan of the one node will ask its backend for.
Spec spec_of(const Graph& graph, const Node& node, const Case& c, bool wants_dx) {
  const auto tensor = [&](const Shape& shape, DType dtype) {
    const std::int64_t pitch = dense_pitch(shape, c.layout);
    return TensorSpec{shape, dtype, c.layout, pitch, pitch};
  };
  Spec spec;
  spec.op = node.op;
  for (const Shape& shape : input_shapes(graph, node)) spec.x.push_back(tensor(shape, c.dtype));
  spec.y = tensor(node.shape, c.dtype);
  for (const Shape& shape : node.params) spec.w.push_back(tensor(shape, c.dtype));
  for (const Shape& shape : node.state) spec.state.push_back(tensor(shape, state_dtype(node.op, c.dtype)));
  spec.wants_dx.assign(spec.x.size(), wants_dx);
  spec.adds_dx.assign(spec.x.size(), false);
  return spec;
}

class LayerMeasurement final : public Measurement {
 public:
  LayerMeasurement(Backend& backend, const Graph& graph, const Options& options, Pass pass)
      : pass_(pass), plan_(graph, backend, options), stopwatch_(plan_) {
    const std::vector<Call>& calls = plan_.calls();
    if (std::none_of(calls.begin(), calls.end(), [&](const Call& call) { return covered(call); }))
      throw Unsupported(fmt::format("nothing to run: {} of {} is a view in the plan", to_string(pass), graph.name()));
    run();
  }

  std::vector<Sample> pass() override { return {run()}; }
  MemoryReport memory() const override { return plan_.memory(); }

 private:
  bool covered(const Call& call) const {
    return std::find(call.passes.begin(), call.passes.end(), pass_) != call.passes.end();
  }

  /// Sums the calls that cover the pass. The processor's time is that of the whole half.
  Sample run() {
    const bool backward = pass_ != Pass::forward;
    if (backward) plan_.forward();
    const double cpu_start = cpu_seconds();
    const std::vector<double> seconds = backward ? stopwatch_.backward() : stopwatch_.forward();
    Sample sample{0, cpu_seconds() - cpu_start};
    const std::size_t first = backward ? plan_.forward_calls() : 0;
    for (std::size_t i = 0; i < seconds.size(); ++i)
      if (covered(plan_.calls()[first + i])) sample.seconds += seconds[i];
    return sample;
  }

  Pass pass_;
  Plan plan_;
  CallStopwatch stopwatch_;
};

struct Distinct {
  const Node* node;
  int layers = 1;
};

std::vector<Distinct> distinct_layers(const Graph& graph) {
  std::vector<Distinct> found;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    const std::vector<Shape> x = input_shapes(graph, node);
    const auto same = std::find_if(found.begin(), found.end(), [&](const Distinct& other) {
      return other.node->op == node.op && input_shapes(graph, *other.node) == x;
    });
    if (same != found.end())
      ++same->layers;
    else
      found.push_back({&node});
  }
  return found;
}

void append_rows(std::vector<Row>& rows, Workshop& workshop, const Case& c, const Graph& graph, const Distinct& layer,
                 Pass pass) {
  const Node& node = *layer.node;
  const bool wants_dx = pass == Pass::backward_data;
  // A backend that was not built has one row, which says so.
  std::vector<std::string> algorithms = {"none"};
  try {
    algorithms = workshop.backend(c.backend).algorithms(spec_of(graph, node, c, wants_dx), pass);
  } catch (const Unsupported&) {
  }
  const Cost work = cost(node.op, input_shapes(graph, node), pass, c.dtype);
  for (const std::string& algorithm : algorithms) {
    auto group = std::make_shared<Group>();
    group->title = fmt::format("{} of {}, {} by {}", node.name, c.network, to_string(pass), algorithm);
    group->facts = c;
    group->parts = {std::string(to_string(pass))};
    group->work = {{static_cast<double>(c.batch), work.flops, work.bytes}};
    group->layers = layer.layers;
    const double passes = pass == Pass::forward ? 1 : 3;  // a backward needs a forward, and may do both gradients
    group->flops_per_pass = passes * work.flops;
    Options options;
    options.dtype = c.dtype;
    options.layout = c.layout;
    options.input_gradient = wants_dx;
    if (pass <= Pass::backward_data) options.choice.algorithm[static_cast<std::size_t>(pass)] = algorithm;
    group->open = [&workshop, c, options, pass, name = node.name] {
      const Graph whole = workshop.graph(c);
      return std::make_unique<LayerMeasurement>(workshop.backend(c.backend), alone(whole, whole.node(name)), options,
                                                pass);
    };
    for (Row& row : rows_of(group, [&](std::string_view part) {
           return layer_name(c, node.name, part, algorithm, workshop.options());
         }))
      rows.push_back(std::move(row));
  }
}

}  // namespace

std::vector<Row> layer_rows(Workshop& workshop, const Case& c) {
  const Graph graph = workshop.graph(c);
  std::vector<Row> rows;
  for (const Distinct& layer : distinct_layers(graph)) {
    append_rows(rows, workshop, c, graph, layer, Pass::forward);
    append_rows(rows, workshop, c, graph, layer, Pass::backward_data);
    if (!layer.node->params.empty()) append_rows(rows, workshop, c, graph, layer, Pass::backward_params);
  }
  return rows;
}

}  // namespace lamina::bench
