// The layers of networks: what they make, hold, compute and move, per image.

#include "describe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <utility>

#include "bench/measure/costs.h"
#include "lamina/nets.h"

namespace lamina::bench {
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

}  // namespace lamina::bench
