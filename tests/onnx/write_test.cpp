// Graphs that write_onnx writes are read back unchanged.

#include "lamina/error.h"
#include "lamina/nets.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// An op after its numbers are stored as f32 in a file.
Op in_f32(Op op) {
  if (auto* lrn = std::get_if<Lrn>(&op)) {
    for (double* number : {&lrn->alpha, &lrn->beta, &lrn->k}) *number = static_cast<float>(*number);
  }
  return op;
}

bool is_written(const Graph& graph) {
  return std::none_of(graph.nodes().begin(), graph.nodes().end(), [](const Node& node) {
    const auto* const recurrent = std::get_if<Recurrent>(&node.op);
    return std::holds_alternative<Embedding>(node.op) || (recurrent != nullptr && recurrent->vocabulary != 0);
  });
}

}  // namespace

void lamina::test::check_written(const Graph& graph) {
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  const auto file = folder / (graph.name() + ".onnx");
  write_onnx(file, graph, weights);
  const OnnxModel back = read_onnx(file, {.batch = 2});
  CHECK(back.graph.name() == graph.name());
  REQUIRE(back.graph.nodes().size() == graph.nodes().size());
  for (std::size_t i = 0; i < graph.nodes().size(); ++i) {
    const Node &a = graph.nodes()[i], &b = back.graph.nodes()[i];
    CAPTURE(a.name, to_string(a.op), to_string(b.op));
    CHECK((a.name == b.name && in_f32(a.op) == in_f32(b.op) && a.inputs == b.inputs && a.shape == b.shape));
    CHECK(a.fixed == b.fixed);
  }
  REQUIRE(back.weights.size() == weights.size());
  for (const auto& [name, tensor] : weights) CHECK(back.weights.at(name).values == tensor.values);
}

TEST_CASE("networks of the zoo are read back as equal graphs with the same numbers") {
  int compared = 0;
  for (const nets::Info& info : nets::list()) {
    const Graph graph = nets::build(info.name, {.batch = 2, .width_divisor = 16});
    if (!is_written(graph)) continue;
    CAPTURE(info.name);
    check_written(graph);
    ++compared;
  }
  CHECK(compared >= 10);
}

TEST_CASE("functions of two values are read back unchanged") {
  Graph graph("pairs");
  const Value x = graph.input({2, 3, 4, 5}, "x");
  const Value pixels = conv(x, "pixels", {.channels = 1, .kernel = 1}), planes = global_average_pool(x, "planes");
  Value y = add(x, pixels, "sum");
  for (int i = 1; i <= static_cast<int>(BinaryFunction::minimum); ++i) {
    const Op op = Binary{static_cast<BinaryFunction>(i)};
    y = apply(op, {y, i % 2 == 0 ? pixels : planes}, "right" + std::to_string(i));
    y = apply(op, {sigmoid(pixels, "s" + std::to_string(i)), y}, "left" + std::to_string(i));
  }
  y = fully_connected(y, "fc", {.outputs = 4});
  maximum(y, tanh(y, "tanh"), "vectors");
  check_written(graph);
}

TEST_CASE("functions of one element are read back unchanged") {
  Graph graph("functions");
  Value x = graph.input({2, 6, 8, 8}, "x");
  for (int i = 0; i <= static_cast<int>(Function::pow); ++i) {
    const auto function = static_cast<Function>(i);
    const bool has_numbers = function == Function::clip || function == Function::hard_sigmoid;
    const bool has_number = has_numbers || function == Function::leaky_relu || function == Function::elu ||
                            function == Function::celu || function == Function::pow;
    const double b = has_numbers ? 0.5 : function == Function::elu ? 1 : 0;
    x = pointwise(x, "function" + std::to_string(i), {function, has_number ? 0.1 : 0, b});
  }
  selu(fully_connected(x, "fc", {.outputs = 5}), "selu");
  check_written(graph);
}

TEST_CASE("trained parameters are read back as trained, and fixed parameters as fixed") {
  Graph graph("trained 'in part'");
  Value x = conv(graph.input({2, 3, 4, 4}, "x"), "blur", {.channels = 3, .kernel = 3, .groups = 3, .bias = false});
  x = conv(x, "it's", {.channels = 5, .kernel = 1});
  x = prelu(prelu(x, "slopes"), "slope", {.by_channel = false});
  for (const char* name : {"learned", "shift alone", "scale alone"}) x = scale_shift(x, name, {.learned = true});
  scale_shift(x, "fixed");
  for (const char* fixed : {"blur.weight", "it's.bias", "shift alone.scale", "scale alone.shift"}) graph.fix(fixed);
  check_written(graph);
}

TEST_CASE("nodes keep any name, even the name of another node's parameter") {
  Graph graph("odd names");
  Value x = graph.input({2, 8, 4, 4}, "in put/\"0\"");
  x = conv(x, "a", {.channels = 8, .kernel = 1});
  x = relu(x, "a.weight");
  x = channel_shuffle(x, "a.bias", 2);
  x = channel_shuffle(x, "a.bias.split", 2);
  x = clip(x, "\xc3\xa9t\xc3\xa9\n", 0, 6);
  x = sigmoid(fully_connected(x, "b.shape", {.outputs = 3}), "b.shape.flat");
  check_written(graph);
}

TEST_CASE("unsupported ops are all named in the error, and so are missing weights") {
  Graph graph("losses");
  const Value x = graph.input({2, 4, 1, 1}, "x"), labels = graph.input({2, 1, 1, 1}, "labels");
  const Value even = lrn(fully_connected(x, "fc", {.outputs = 4}), "even", {.size = 4});
  resize(graph.input({2, 3, 4, 3}, "image"), "of other extents",
         {.to = {9, 3}, .step_h = 2});  // a scale of 1/2 would give 2 rows, not 9
  softmax_cross_entropy(even, labels, "loss");
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  CHECK_THROWS_MATCHES(write_onnx(folder / "net.onnx", graph, weights), Unsupported,
                       Says("\"even\"", "\"loss\"", "\"of other extents\" is resize"));
  CHECK_THROWS_MATCHES(write_onnx(folder / "net.onnx", graph, {}), UsageError, Says("fc.weight"));
  TensorFile wide = weights;
  wide["fc.bias"].values[0] = 1e39;
  CHECK_THROWS_AS(write_onnx(folder / "net.onnx", graph, wide), FileError);
  CHECK_FALSE(std::filesystem::exists(folder / "net.onnx"));
}

TEST_CASE("a shared parameter is one initializer in the file, and one shared parameter when it is read back") {
  Graph graph("shared");
  Value x = graph.input({1, 3, 4, 4}, "x");
  for (const std::string use : {"a", "b"}) x = batch_norm(conv(x, use, {.channels = 3, .kernel = 1}), use + ".norm");
  fully_connected(global_average_pool(x), "fc", {.outputs = 3});
  graph.share_all("b", "a");
  graph.share_all("b.norm", "a.norm");
  graph.share("fc.weight", "a.weight");  // 3 x 3 weights are shared with 3 x 3 x 1 x 1 filters
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  write_onnx(folder / "shared.onnx", graph, weights);
  const OnnxModel back = read_onnx(folder / "shared.onnx");
  CHECK(names(back.graph.parameters()) == names(graph.parameters()));
  CHECK(names(back.graph.states()) == names(graph.states()));
  for (const auto& [name, tensor] : back.weights) CHECK(tensor.values == weights.at(name).values);
}
