// The layers of networks: what they make, hold, compute and move, per image.

#include "describe.h"

#include <fmt/format.h>

#include "io/grid.h"

namespace lamina::bench {
namespace {

/// "3x64x7x7": without the images.
std::string image_text(const Shape& s) { return fmt::format("{}x{}x{}", s.c, s.h, s.w); }

/// What stands between the parentheses of "conv(64, 7x7, stride 2x2)".
std::string geometry(const Op& op) {
  const std::string text = to_string(op);
  const std::size_t open = text.find('(');
  return open == std::string::npos ? "" : text.substr(open + 1, text.rfind(')') - open - 1);
}

}  // namespace

std::string list_networks(Format format) {
  Grid grid;
  grid.columns = {{"network"}, {"image", true}, {"smallest", true}, {"channels", true}, {"classes", true}, {"source"}};
  for (const nets::Info& info : nets::list())
    grid.rows.push_back({std::string(info.name), fmt::format("{}", info.image), fmt::format("{}", info.smallest_image),
                         fmt::format("{}", info.channels), fmt::format("{}", info.classes), std::string(info.source)});
  return grid.print(format);
}

std::string describe(const DescribeOptions& options) {
  const Workshop workshop(options);
  const bool text = options.format == Format::text;
  Grid grid;
  if (!text) grid.columns.push_back({"network"});
  for (const char* title : {"name", "op", "geometry", "output"}) grid.columns.push_back({title});
  for (const char* title : {"parameters", "multiply_adds", "bytes"}) grid.columns.push_back({title, true});

  std::string all;
  for (const std::string& network : options.networks) {
    const Case one_image{std::string(nets::info(network).name), "", options.dtypes.front(), Layout::nchw, 1};
    const Graph graph = workshop.graph(one_image);
    const auto row = [&](std::vector<std::string> cells) {
      if (!text) cells.insert(cells.begin(), one_image.network);
      grid.rows.push_back(std::move(cells));
    };
    std::int64_t bytes = 0;
    for (const Node& node : graph.nodes()) {
      std::int64_t parameters = 0, products = 0, moved = 0;
      for (const Shape& shape : node.params) parameters += shape.count();
      if (!node.inputs.empty()) {
        const std::vector<Shape> x = input_shapes(graph, node);
        products = multiply_adds(node.op, x);
        moved = static_cast<std::int64_t>(cost(node.op, x, Pass::forward, one_image.dtype).bytes);
      }
      bytes += moved;
      row({node.name, std::string(op_name(node.op)), geometry(node.op), image_text(node.shape),
           fmt::format("{}", parameters), fmt::format("{}", products), fmt::format("{}", moved)});
    }
    row({"total", "", fmt::format("{} layers", graph.nodes().size() - 1), image_text(graph.nodes().back().shape),
         fmt::format("{}", graph.parameter_count()), fmt::format("{}", graph.multiply_adds()),
         fmt::format("{}", bytes)});
    if (!text) continue;
    all += fmt::format(
        "{}{}: {}\n\n{}\nPer image. Bytes: what a forward pass in {} reads and writes, every tensor once, "
        "at a batch of one.\n",
        all.empty() ? "" : "\n", one_image.network, nets::info(network).source, grid.text(),
        to_string(one_image.dtype));
    grid.rows.clear();
  }
  return text ? all : grid.csv();
}

}  // namespace lamina::bench
