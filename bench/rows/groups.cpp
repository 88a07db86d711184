// Rows net/...: a whole network's forward, backward and total in training, and its inference. Rows layer/...: a
// distinct layer of a network, with one pass and one algorithm, as a plan of one node. In rows layer/..., parameter
// gradients are overwritten, and x and dy are drawn once.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "bench/measure/layers.h"
#include "bench/measure/net_run.h"
#include "rows.h"

namespace lamina::bench {
namespace {

std::vector<Row> rows_of_mode(Session& session, const RunOptions& options, const Config& c, Mode mode,
                              const Graph& graph) {
  const bool training = mode == Mode::training;
  const GraphCost cost = graph_cost(graph, c.dtype, session.plans.protocol(c.network).input_gradient);
  const double images = c.batch;
  const int ranks = options.net.ranks;  // the graph has only one rank's part of the batch
  const Work forward = {images, ranks * cost.forward.flops}, backward = {images, ranks * cost.backward.flops};

  Group group;
  group.title = fmt::format("{} on {}{}", c.network, c.backend, training ? "" : ", inference");
  group.config = c;
  group.ranks = ranks;
  if (training) {
    group.parts = {"forward", "backward", "total"};
    group.work = {forward, backward, {images, forward.flops + backward.flops}};
  } else {
    group.parts = {"inference"};
    group.work = {forward};
  }
  group.flops_per_pass = group.work.back().flops / ranks;
  group.open = [&session, &options, c, mode] {
    Backend& backend = session.backends.usable(c.backend);
    if (options.plan.cuda_graph) backend.device().capture([] {});  // may throw Unsupported: better now than after work
    auto run = std::make_unique<NetRun>(session.plans.graph(c), backend, session.plans.options(c, mode),
                                        options.plan.cuda_graph, session.plans.weights(c), session.ranks,
                                        runs_on_gpu(c.backend));
    warm_up(backend.device(), [&run] { run->untimed(); });
    return run;
  };
  return rows_of(std::move(group), options, [&](std::string_view part) { return key_of("net", c, part, options); });
}

/// The word for the backend's pick, in place of an algorithm's name.
constexpr const char* by_default = "default";

/// Adds the rows of one layer and pass: one for each algorithm.
void append_rows(std::vector<Row>& rows, Session& session, const RunOptions& options, const Config& c,
                 const Graph& graph, const DistinctLayer& layer, Pass pass) {
  const Node& node = layer.first();
  const Cost work = cost(node.op, input_shapes(graph, node), pass, c.dtype);
  const auto reference = std::make_shared<std::optional<Reference>>();
  std::vector<NamedAlgorithm> algorithms = algorithms_of(session.backends, c, graph, node, pass);
  if (algorithms.size() > 1) algorithms.insert(algorithms.begin(), {by_default});  // the backend's pick has a row, too
  for (const NamedAlgorithm& algorithm : algorithms) {
    Group group;
    group.title = fmt::format("{} of {}, {} by {}", node.name, c.network, to_string(pass), algorithm.name);
    group.config = c;
    group.parts = {std::string(to_string(pass))};
    group.work = {{static_cast<double>(c.batch), work.flops, work.bytes}};
    group.layers = layer.count();
    // A backward pass needs a forward pass, and may make both gradients.
    group.flops_per_pass = algorithm.listed ? (pass == Pass::forward ? 1 : 3) * work.flops : 0;
    group.open = [&session, c, pass, algorithm, reference, name = node.name, cold = options.plan.cold] {
      const Graph whole = session.plans.graph(c);
      const NamedAlgorithm asked = algorithm.name == by_default ? NamedAlgorithm{} : algorithm;
      return open_layer(session.backends.usable(c.backend), c, whole, whole.node(name), pass, asked,
                        session.plans.choice(), reference, cold);
    };
    const auto key = [&](std::string_view part) {
      return key_of("layer", c, part, options, node.name, algorithm.name);
    };
    std::ranges::move(rows_of(std::move(group), options, key), std::back_inserter(rows));
  }
}

}  // namespace

std::vector<Row> net_rows(Session& session, const RunOptions& options, const Config& c) {
  const Graph graph = session.plans.graph(c);
  std::vector<Row> rows = rows_of_mode(session, options, c, Mode::training, graph);
  if (options.net.ranks > 1) return rows;
  std::ranges::move(rows_of_mode(session, options, c, Mode::inference, graph), std::back_inserter(rows));
  return rows;
}

std::vector<Row> layer_rows(Session& session, const RunOptions& options, const Config& c) {
  const Graph graph = session.plans.graph(c);
  std::vector<Row> rows;
  for (const DistinctLayer& layer : distinct_layers(graph)) {
    const std::vector<Shape> x = input_shapes(graph, layer.first());
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params})
      if (cost(layer.first().op, x, pass, c.dtype).bytes > 0)  // 0: the op lacks the pass
        append_rows(rows, session, options, c, graph, layer, pass);
  }
  return rows;
}

}  // namespace lamina::bench
