// The layers of networks: what they make, hold, compute and move, per image, and which algorithms backends take for
// them.

#include "describe.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "bench/measure/layers.h"
#include "lamina/nets.h"

namespace lamina::bench {
namespace {

constexpr const char* only_one = "the only algorithm";

struct Line {
  std::string layers, passes, algorithm, reason;
};

/// As a plan would lower the network; no plan is made.
std::vector<Line> lowered(Session& session, const Config& c) {
  const Graph graph = session.plans.graph(c);
  Backend& backend = session.backends.at(c.backend);
  std::vector<Line> lines;
  for (const PlannedUnit& unit : planned_units(graph, backend, session.plans.options(c)))
    for (const Lowered::Step& step : backend.lower(unit.spec, unit.choice).steps) {
      std::string reason = step.reason.empty() ? only_one : step.reason;
      lines.push_back({layers_text(graph, unit.nodes), passes_text(step.passes), step.algorithm, std::move(reason)});
    }
  return lines;
}

/// As they are in a plan that measured them.
std::vector<Line> measured(Session& session, const Config& c) {
  const Plan plan(session.plans.graph(c), session.backends.usable(c.backend), session.plans.options(c));
  std::vector<Line> lines;
  for (const Call& call : plan.calls()) {
    const bool alone = plan.backend().algorithms(*call.spec, call.passes.front()).size() < 2;
    std::string reason = alone ? only_one : "measured";
    if (!call.tied.empty()) reason += fmt::format(", tied with {}", fmt::join(call.tied, ", "));
    lines.push_back({layers_text(plan.graph(), call.nodes), passes_text(call.passes), call.algorithm, reason});
  }
  return lines;
}

}  // namespace

std::string image_text(const Shape& s) { return fmt::format("{}x{}x{}", s.c, s.h, s.w); }

std::string geometry(const Op& op) {
  const std::string text = to_string(op);
  const std::size_t open = text.find('(');
  return open == std::string::npos ? "" : text.substr(open + 1, text.rfind(')') - open - 1);
}

std::string list_networks(Format format) {
  TextTable table;
  table.columns = {{"network"}, {"image", true},    {"smallest", true}, {"channels", true}, {"classes", true},
                   {"softmax"}, {"input_gradient"}, {"accumulate"},     {"source"}};
  const auto yes = [](bool value) { return std::string(value ? "yes" : "no"); };
  for (const nets::Info& info : nets::list())
    table.rows.push_back({std::string(info.name), fmt::format("{}", info.image), fmt::format("{}", info.smallest_image),
                          fmt::format("{}", info.channels), fmt::format("{}", info.classes), yes(info.protocol.softmax),
                          yes(info.protocol.input_gradient), yes(info.protocol.accumulate), std::string(info.source)});
  return table.print(format);
}

std::string describe(const DescribeOptions& options) {
  TextTables tables(
      options.format, {{"network"}},
      {{"name"}, {"op"}, {"geometry"}, {"output"}, {"parameters", true}, {"multiply_adds", true}, {"bytes", true}});
  std::string all;
  for (const std::string& network : options.networks) {
    const Network info = bench::network(network, options.net);
    const Graph graph = graph_of_one_image(info.name, options.net);
    const auto add = [&](std::string name, std::string op, std::string what, const Shape& output,
                         std::int64_t parameters, std::int64_t products, std::int64_t bytes) {
      tables.add({info.name}, {std::move(name), std::move(op), std::move(what), image_text(output),
                               fmt::format("{}", parameters), fmt::format("{}", products), fmt::format("{}", bytes)});
    };
    std::int64_t bytes = 0;
    for (const Node& node : graph.nodes()) {
      std::int64_t products = 0, moved = 0;
      if (!node.inputs.empty()) {
        const std::vector<Shape> x = input_shapes(graph, node);
        products = multiply_adds(node.op, x);
        moved = static_cast<std::int64_t>(cost(node.op, x, Pass::forward, options.configs.dtypes.front()).bytes);
      }
      bytes += moved;
      std::string what = geometry(node.op);
      int owner = -1;
      for (const Slot& of : node.params_of) owner = std::max(owner, of.node);
      if (owner >= 0) what += (what.empty() ? "of " : ", of ") + graph.nodes()[static_cast<std::size_t>(owner)].name;
      add(node.name, std::string(op_name(node.op)), std::move(what), node.shape, own_parameters(node), products, moved);
    }
    add("total", "", fmt::format("{} layers", graph.nodes().size() - 1), graph.nodes().back().shape,
        graph.parameter_count(), graph.multiply_adds(), bytes);
    if (options.format == Format::text)
      all += fmt::format(
          "{}{}: {}\n\n{}\nPer image. Bytes: what a forward pass in {} reads and writes, every tensor once, "
          "at a batch of one.\n",
          all.empty() ? "" : "\n", info.name, info.source, tables.take(), to_string(options.configs.dtypes.front()));
  }
  return options.format == Format::text ? all : tables.take();
}

std::string describe_algorithms(Session& session, const DescribeOptions& options) {
  TextTables tables(options.format, {{"network"}, {"backend"}, {"batch", true}},
                    {{"layer"}, {"pass"}, {"algorithm"}, {"reason"}});
  std::string all;
  for (const Config& c : configs(session.backends, options.configs, options.net, options.networks)) {
    const bool measures = options.plan.choice.measure;
    for (const Line& line : measures ? measured(session, c) : lowered(session, c))
      tables.add({c.network, c.backend, fmt::format("{}", c.batch)},
                 {line.layers, line.passes, line.algorithm, line.reason});
    if (options.format == Format::text)
      all += fmt::format("{}{}, {}, {}, {}\n\n{}", all.empty() ? "" : "\n", to_string(c), to_string(c.dtype),
                         to_string(c.layout), mode_name(options.plan.mode), tables.take());
  }
  return options.format == Format::text ? all : tables.take();
}

}  // namespace lamina::bench
