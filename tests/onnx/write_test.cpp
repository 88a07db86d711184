// What write_onnx writes is read back as it was.

#include <algorithm>

#include "lamina/error.h"
#include "lamina/nets.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// An op as a file of f32 keeps its numbers.
Op in_f32(Op op) {
  if (auto* lrn = std::get_if<Lrn>(&op)) {
    for (double* number : {&lrn->alpha, &lrn->beta, &lrn->k}) *number = static_cast<float>(*number);
  }
  return op;
}

bool is_written(const Graph& graph) {
  return std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    return std::holds_alternative<Embedding>(node.op) || std::holds_alternative<Lstm>(node.op);
  });
}

}  // namespace

TEST_CASE("networks of the zoo are read back as equal graphs with the same numbers") {
  const Folder folder;
  int compared = 0;
  for (const nets::Info& info : nets::list()) {
    const Graph graph = nets::build(info.name, {.batch = 2, .width_divisor = 16});
    if (!is_written(graph)) continue;
    CAPTURE(info.name);
    const TensorFile weights = counted_weights(graph);
    const auto file = folder / (std::string(info.name) + ".onnx");
    write_onnx(file, graph, weights);
    const OnnxModel back = read_onnx(file, {.batch = 2});
    CHECK(back.graph.name() == info.name);
    REQUIRE(back.graph.nodes().size() == graph.nodes().size());
    for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
      const Node &a = graph.nodes()[i], &b = back.graph.nodes()[i];
      CAPTURE(a.name, to_string(a.op), to_string(b.op));
      CHECK((a.name == b.name && in_f32(a.op) == in_f32(b.op) && a.inputs == b.inputs && a.shape == b.shape));
    }
    REQUIRE(back.weights.size() == weights.size());
    for (const auto& [name, tensor] : weights) CHECK(back.weights.at(name).values == tensor.values);
    ++compared;
  }
  CHECK(compared >= 10);
}

TEST_CASE("a fully connected op between convolutions has rows and columns again in the file") {
  Graph graph("mixed");
  const Value x = graph.input({2, 3, 4, 4});
  const Value f = fully_connected(x, "fc", {.outputs = 5});
  const Value c = conv(f, "conv", {.channels = 6, .kernel = 1});
  const Value s = slice(concat({f, c}), "slice", {.first = 2, .channels = 4});
  softmax(sigmoid(tanh(s)));
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  write_onnx(folder / "mixed.onnx", graph, weights);
  const OnnxModel back = read_onnx(folder / "mixed.onnx", {.batch = 2});
  REQUIRE(back.graph.nodes().size() == graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    CHECK(back.graph.nodes()[i].op == graph.nodes()[i].op);
    CHECK(back.graph.nodes()[i].inputs == graph.nodes()[i].inputs);
  }
}

TEST_CASE("pads by cells are read back as they were") {
  Graph graph("cells");
  pad(graph.input({2, 6, 8, 8}, "x"), "pad", {.before = 1, .after = {0, 2}, .by = PadBy::reflect});
  const Folder folder;
  write_onnx(folder / "cells.onnx", graph, {});
  const OnnxModel back = read_onnx(folder / "cells.onnx", {.batch = 2});
  REQUIRE(back.graph.nodes().size() == 2);
  CHECK(back.graph.node("pad").op == graph.node("pad").op);
  CHECK(back.graph.node("pad").shape == graph.node("pad").shape);
}

TEST_CASE("fixed numbers are read back as they were") {
  Graph graph("fixed");
  const Value x = scale_shift(graph.input({2, 3, 2, 2}, "x"), "image");
  scale_shift(fully_connected(x, "fc", {.outputs = 4, .bias = false}), "logits", {.by_channel = false});
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  write_onnx(folder / "fixed.onnx", graph, weights);
  const OnnxModel back = read_onnx(folder / "fixed.onnx", {.batch = 2});
  REQUIRE(back.graph.nodes().size() == 4);
  for (std::size_t i = 0; i < 4; ++i) CHECK(back.graph.nodes()[i].op == graph.nodes()[i].op);
  for (const auto& [name, tensor] : weights) CHECK(back.weights.at(name).values == tensor.values);
}

TEST_CASE("ops that are not written are all named, and weights that are missing") {
  Graph graph("losses");
  const Value x = graph.input({2, 4, 1, 1}, "x"), labels = graph.input({2, 1, 1, 1}, "labels");
  const Value even = lrn(fully_connected(x, "fc", {.outputs = 4}), "even", {.size = 4});
  softmax_cross_entropy(even, labels, "loss");
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  CHECK_THROWS_AS(write_onnx(folder / "net.onnx", graph, weights), Unsupported);
  CHECK_THROWS_WITH(write_onnx(folder / "net.onnx", graph, weights),
                    ContainsSubstring("\"even\"") && ContainsSubstring("\"loss\""));
  CHECK_THROWS_AS(write_onnx(folder / "net.onnx", graph, {}), UsageError);
  CHECK_THROWS_WITH(write_onnx(folder / "net.onnx", graph, {}), ContainsSubstring("fc.weight"));
  TensorFile wide = weights;
  wide["fc.bias"].values[0] = 1e39;
  CHECK_THROWS_AS(write_onnx(folder / "net.onnx", graph, wide), FileError);
  CHECK_FALSE(std::filesystem::exists(folder / "net.onnx"));
}
