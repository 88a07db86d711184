// What read_onnx makes of models by hand: names, shapes, folded chains, views, refusals.

#include "lamina/onnx.h"

#include <numeric>

#include "lamina/error.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::vector<float> counted(std::int64_t count, float first = 0) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), first);
  return values;
}

/// x -> Conv -> Relu -> flattened by a chain of shapes -> MatMul -> Add.
Model small_network() {
  return {
      .nodes = {node("Conv", {"x", "w"}, {"c"}, {{"kernel_shape", Extents{3, 3}}, {"pads", Extents{1, 1, 1, 1}}},
                     "conv1"),
                node("Relu", {"c"}, {"r"}), node("Shape", {"r"}, {"shape"}), node("Gather", {"shape", "zero"}, {"n"}),
                node("Concat", {"n", "rest"}, {"wanted"}, {{"axis", std::int64_t{0}}}),
                node("Reshape", {"r", "wanted"}, {"flat"}), node("MatMul", {"flat", "m"}, {"product"}, {}, "fc"),
                node("Add", {"product", "b"}, {"y"})},
      .initializers = {tensor("w", {2, 1, 3, 3}, counted(18)), integers("zero", {0}), integers("rest", {-1}),
                       tensor("m", {8, 3}, counted(24)), tensor("b", {3}, {1, 2, 3})},
      .inputs = {value("x", {0, 1, 2, 2})},
      .outputs = {value("y", {0, 3})}};
}

}  // namespace

TEST_CASE("a model becomes a graph with its names, its batch, and its weights by the graph's names") {
  const OnnxModel model = read(small_network(), {.batch = 2});
  CHECK(model.graph.name() == "net");
  REQUIRE(model.graph.nodes().size() == 4);
  CHECK(model.graph.node("x").shape == Shape{2, 1, 2, 2});
  CHECK(model.graph.node("conv1").op == Op(Conv{.channels = 2, .kernel = 3, .pad = 1, .bias = false}));
  CHECK(model.graph.node("r").op == Op(Relu{}));
  CHECK(model.graph.node("fc").op == Op(FullyConnected{.outputs = 3}));
  CHECK(model.weights.at("conv1.weight").extents == Extents{2, 1, 3, 3});
  CHECK(model.weights.at("fc.weight").extents == Extents{3, 8});
  CHECK(model.weights.at("fc.weight").values[1] == 3);  // the transpose of the file's
  CHECK(model.weights.at("fc.bias").values == std::vector<double>{1, 2, 3});
  CHECK(model.output.extents == Extents{2, 3});
}

TEST_CASE("an open batch is 1, a given one replaces that of the file") {
  CHECK(read(small_network()).graph.node("x").shape.n == 1);
  Model fixed = small_network();
  fixed.inputs = {value("x", {4, 1, 2, 2})};
  CHECK(read(fixed).graph.node("x").shape.n == 4);
  CHECK(read(fixed, {.batch = 3}).output.extents == Extents{3, 3});
}

TEST_CASE("which axis is the batch follows from the operators, and is said where it is not the first") {
  const std::vector<std::string> weights = {tensor("w", {1, 8, 3}, std::vector<float>(24)),
                                            tensor("r", {1, 8, 2}, std::vector<float>(16)),
                                            tensor("table", {5, 3}, std::vector<float>(15))};
  const auto lstm = node("LSTM", {"s", "w", "r"}, {"y"}, {{"hidden_size", std::int64_t{2}}});
  Model time_first = of_nodes({node("Identity", {"x"}, {"s"}), lstm}, {7, 2, 3}, weights);
  const OnnxModel read_for_4 = read(time_first, {.batch = 4});
  CHECK(read_for_4.inputs[0].extents == Extents{7, 4, 3});
  CHECK(read_for_4.graph.nodes()[0].shape == Shape{4, 3, 7, 1});
  CHECK(read_for_4.replaced_batch == 2);
  CHECK(read_for_4.notes == std::vector<std::string>{"'x' has its batch at axis 1"});
  time_first.inputs = {value("x", {0, 0, 3}, {"steps", "batch"})};
  CHECK(read(time_first, {.batch = 4, .extents = {{"steps", 9}}}).inputs[0].extents == Extents{9, 4, 3});
  const Model ids = of_nodes({node("Gather", {"table", "x"}, {"s"}), lstm}, {7, 2}, weights);
  CHECK(read(ids, {.batch = 4}).inputs[0].extents == Extents{7, 4});
  const Model batch_first =
      of_nodes({node("Transpose", {"x"}, {"s"}, {{"perm", Extents{1, 0, 2}}}), lstm}, {2, 7, 3}, weights);
  CHECK(read(batch_first, {.batch = 4}).inputs[0].extents == Extents{4, 7, 3});
  CHECK(read(batch_first, {.batch = 4}).notes.empty());

  const auto image = [](std::int64_t axis, const Extents& filter) {
    return of_nodes({node("Unsqueeze", {"x"}, {"i"}, {{"axes", Extents{axis}}}), node("Conv", {"i", "f"}, {"y"})},
                    {3, 5, 6}, {tensor("f", filter, std::vector<float>(3))}, 12);
  };
  const OnnxModel one = read(image(0, {1, 3, 1, 1}));
  CHECK(one.graph.nodes()[0].shape == Shape{1, 3, 5, 6});
  CHECK(one.notes[0] == "'x' is one image: it has no batch");
  CHECK_THROWS_AS(read(image(0, {1, 3, 1, 1}), {.batch = 2}), UsageError);
  CHECK(read(image(1, {3, 1, 1, 1}), {.batch = 4}).graph.nodes()[0].shape == Shape{4, 1, 5, 6});
  const Model plain = of_nodes({node("Relu", {"x"}, {"y"})}, {2, 3});
  CHECK(read(plain, {.batch = 4, .batch_axes = {{"x", 1}}}).inputs[0].extents == Extents{2, 4});
  CHECK_THROWS_AS(read(plain, {.batch_axes = {{"x", 2}}}), UsageError);
}

TEST_CASE("an axis that the file leaves open needs an extent by its name") {
  Model model{.nodes = {node("Relu", {"x"}, {"y"})},
              .initializers = {},
              .inputs = {value("x", {1, 0})},
              .outputs = {value("y", {1, 0})}};
  CHECK_THROWS_WITH(read(model),
                    ContainsSubstring("'batch' (axis 1 of 'x') open: give its extent in OnnxOptions::extents"));
  CHECK(read(model, {.extents = {{"batch", 7}}}).graph.node("x").shape == Shape{1, 7, 1, 1});
}

TEST_CASE("the open extents of a file are listed, all that are missing are named, and others are refused") {
  Model model{.nodes = {node("Conv", {"x", "w"}, {"y"})},
              .initializers = {tensor("w", {1, 1, 1, 1}, {2})},
              .inputs = {value("x", {0, 1, 0, 0}, {"n", "height", "width"}), value("w", {0}, {"initialized"}),
                         value("other", {0, 0}, {"n", "not needed"})},
              .outputs = {value("y", {})}};
  const Folder folder;
  write(folder / "net.onnx", bytes_of(model));
  std::vector<std::string> names;
  for (const OnnxOpenExtent& open : onnx_open_extents(folder / "net.onnx")) {
    names.push_back(open.name);
    CHECK(open.batch == (open.name == "n"));
  }
  CHECK(names == std::vector<std::string>{"n", "height", "width", "not needed"});
  CHECK_THROWS_WITH(read(model), ContainsSubstring("net.onnx leaves 'height' (axis 2 of 'x'), 'width' (axis 3 of 'x') "
                                                   "open: give their extents in OnnxOptions::extents"));
  CHECK_THROWS_WITH(read(model, {.extents = {{"height", 2}}}),
                    ContainsSubstring("net.onnx leaves 'width' (axis 3 of 'x') open: give its extent"));
  CHECK(read(model, {.extents = {{"height", 2}, {"width", 3}}}).graph.node("x").shape == Shape{1, 1, 2, 3});
  for (const char* wrong : {"hieght", "initialized"}) {
    CAPTURE(wrong);
    CHECK_THROWS_AS(read(model, {.extents = {{wrong, 2}}}), UsageError);
    CHECK_THROWS_WITH(read(model, {.extents = {{"height", 2}, {"width", 3}, {wrong, 2}}}),
                      ContainsSubstring("'" + std::string(wrong) + "' of OnnxOptions::extents names no open axis") &&
                          ContainsSubstring("valid names: 'n', 'height', 'width', 'not needed'"));
  }
  CHECK_THROWS_WITH(read(of_nodes({node("Relu", {"x"}, {"y"})}, {1, 2}), {.extents = {{"batch", 2}}}),
                    ContainsSubstring("'batch' of OnnxOptions::extents names no open axis; none is open"));
}

TEST_CASE("a network that flattens pixels before channels has its weights in the graph's order") {
  // y = the sum of (index in the file's order) * x, over rows, columns, channels in this order.
  Model model{.nodes = {node("Transpose", {"x"}, {"t"}, {{"perm", Extents{0, 2, 3, 1}}}), node("Flatten", {"t"}, {"f"}),
                        node("Gemm", {"f", "m"}, {"y"})},
              .initializers = {tensor("m", {12, 1}, counted(12))},
              .inputs = {value("x", {1, 3, 2, 2})},
              .outputs = {value("y", {1, 1})}};
  double expected = 0;
  for (int c = 0; c < 3; ++c) {
    for (int pixel = 0; pixel < 4; ++pixel) expected += (pixel * 3 + c) * (c * 4 + pixel);
  }
  CHECK(output_of(read(model)) == std::vector<double>{expected});
}

TEST_CASE("pads that differ at the two ends give the sums of the definition") {
  for (const Extents& pads : {Extents{0, 1, 1, 0}, Extents{1, 0, 0, 2}, Extents{0, 0, 1, 1}, Extents{2, 1, 1, 1}}) {
    for (const std::int64_t stride : {1, 2}) {
      Model model{.nodes = {node("Conv", {"x", "w"}, {"y"}, {{"pads", pads}, {"strides", Extents{stride, stride}}})},
                  .initializers = {tensor("w", {1, 1, 2, 3}, counted(6, 1))},
                  .inputs = {value("x", {1, 1, 5, 6})},
                  .outputs = {value("y", {1, 1, 1, 1})}};
      std::vector<double> expected;
      for (std::int64_t p = -pads[0]; p + 2 <= 5 + pads[2]; p += stride) {
        for (std::int64_t q = -pads[1]; q + 3 <= 6 + pads[3]; q += stride) {
          double sum = 0;
          for (std::int64_t r = 0; r < 2; ++r) {
            for (std::int64_t s = 0; s < 3; ++s) {
              const bool inside = p + r >= 0 && p + r < 5 && q + s >= 0 && q + s < 6;
              if (inside) sum += static_cast<double>((r * 3 + s + 1) * ((p + r) * 6 + q + s));
            }
          }
          expected.push_back(sum);
        }
      }
      CAPTURE(pads, stride);
      CHECK(output_of(read(model)) == expected);
    }
  }
}

TEST_CASE("scales and shifts after a batch norm stay beside it, as fixed numbers") {
  Model model{
      .nodes = {node("BatchNormalization", {"x", "s", "b", "m", "v"}, {"n"}, {{"epsilon", 1e-7F}, {"momentum", 0.75F}},
                     "bn"),
                node("Mul", {"n", "k"}, {"scaled"}), node("Add", {"scaled", "t"}, {"y"})},
      .initializers = {tensor("s", {2}, {1, 2}), tensor("b", {2}, {3, 4}), tensor("m", {2}, {0, 1}),
                       tensor("v", {2}, {1, 4}), tensor("k", {2, 1, 1}, {5, 6}), tensor("t", {2, 1, 1}, {7, 8})},
      .inputs = {value("x", {1, 2, 1, 2})},
      .outputs = {value("y", {1, 2, 1, 2})}};
  const OnnxModel read_model = read(model);
  REQUIRE(read_model.graph.nodes().size() == 3);
  CHECK(std::get<BatchNorm>(read_model.graph.node("bn").op).momentum == 0.25);
  CHECK(read_model.weights.at("bn.weight").values == std::vector<double>{1, 2});
  CHECK(read_model.weights.at("bn.bias").values == std::vector<double>{3, 4});
  CHECK(read_model.weights.at("scaled.scale").values == std::vector<double>{5, 6});
  CHECK(read_model.weights.at("scaled.shift").values == std::vector<double>{7, 8});
}

TEST_CASE("rows that are gathered from a table are an embedding, with the features last") {
  Model model{.nodes = {node("Gather", {"table", "x"}, {"y"}, {}, "words")},
              .initializers = {tensor("table", {6, 2}, counted(12))},
              .inputs = {value("x", {2, 3})},
              .outputs = {value("y", {})}};
  const OnnxModel words = read(model);
  CHECK(words.graph.node("x").shape == Shape{2, 1, 3, 1});
  CHECK(words.output.extents == Extents{2, 3, 2});
  std::vector<double> expected(12);
  std::iota(expected.begin(), expected.end(), 0.0);
  CHECK(output_of(words) == expected);
}

TEST_CASE("before opset 13 a softmax is over all axes from its axis on, later along one") {
  Model model{.nodes = {node("Softmax", {"x"}, {"y"}, {{"axis", std::int64_t{1}}})},
              .initializers = {},
              .inputs = {value("x", {2, 3, 4})},
              .outputs = {value("y", {2, 3, 4})},
              .opset = 11};
  CHECK(read(model).graph.node("x").shape == Shape{2, 12, 1, 1});
  model.opset = 13;
  CHECK(read(model).graph.node("x").shape == Shape{2, 3, 4, 1});
}

TEST_CASE("everything that is not supported is named at once: node, operator, opset") {
  Model model = small_network();
  model.nodes.push_back(node("Cumulate", {"y"}, {"z"}, {}, "first one"));
  model.nodes.push_back(node("Relu", {"z"}, {"u"}));
  model.nodes.push_back(node("Clip", {"x"}, {"v"}, {}, "fine"));
  model.nodes.push_back(node("MaxPool", {"v"}, {"p", "at"},
                             {{"kernel_shape", Extents{2, 2}}, {"storage_order", std::int64_t{1}}}, "pool"));
  model.nodes.push_back(node("Einsum", {"u", "p", "at"}, {"end"}, {}, "second one"));
  model.inputs = {value("x", {0, 1, 8, 8})};
  model.initializers[3] = tensor("m", {128, 3}, counted(384));
  model.outputs = {value("end", {})};
  CHECK_THROWS_AS(read(model), Unsupported);
  CHECK_THROWS_WITH(read(model), ContainsSubstring("'first one' (Cumulate, opset 17)") &&
                                     ContainsSubstring("'pool' (MaxPool, opset 17)") &&
                                     ContainsSubstring("'second one' (Einsum, opset 17)") &&
                                     ContainsSubstring("not judged, as they are behind these: 1 Relu, first 'u'"));
}

TEST_CASE("the order of an input follows from what computes with it, and not from what asks for its extents") {
  const std::vector<float> w = {1, 0, 0, 1};
  const OnnxModel model =
      read(of_nodes({node("Transpose", {"x"}, {"t"}, {{"perm", Extents{1, 0, 2}}}), node("Shape", {"t"}, {"s"}),
                     node("MatMul", {"t", "w"}, {"p"}), node("Reshape", {"p", "s"}, {"y"})},
                    {1, 3, 2}, {tensor("w", {2, 2}, w)}));
  CHECK(model.output.extents == Extents{3, 1, 2});
  CHECK(output_of(model) == std::vector<double>{0, 1, 2, 3, 4, 5});
}

TEST_CASE("what the output does not need is not read") {
  Model model = small_network();
  model.nodes.push_back(node("Nonsense", {"c"}, {"unused"}));
  CHECK(read(model).graph.nodes().size() == 4);
}

TEST_CASE("a file with several outputs gives the one that is asked for") {
  Model model = small_network();
  model.outputs.push_back(value("r", {}));
  CHECK_THROWS_WITH(read(model), ContainsSubstring("'y', 'r'") && ContainsSubstring("name one in OnnxOptions::output"));
  CHECK_THROWS_AS(read(model), UsageError);
  CHECK(read(model, {.output = "r"}).output.extents == Extents{1, 2, 2, 2});
  CHECK_THROWS_AS(read(model, {.output = "c"}), UsageError);
}

TEST_CASE("weights that the file leaves to its caller are given as constants") {
  Model model{.nodes = {node("Gemm", {"x", "m"}, {"y"}, {{"transB", std::int64_t{1}}})},
              .initializers = {},
              .inputs = {value("x", {1, 2}), value("m", {1, 2})},
              .outputs = {value("y", {1, 1})}};
  CHECK_THROWS_AS(read(model), Unsupported);
  const HostTensor m{.dtype = DType::f32, .extents = {1, 2}, .values = {3, 5}};
  CHECK(output_of(read(model, {.constants = {{"m", m}}})) == std::vector<double>{5});
  CHECK_THROWS_AS(read(model, {.constants = {{"k", m}}}), UsageError);
}

namespace {

/// Numbers for a file of external data: 9, then 1, 2, 3.
const std::string numbers = [] {
  const std::vector<float> values = {9, 1, 2, 3};
  return std::string(reinterpret_cast<const char*>(values.data()), 16);
}();

/// The product of 0, 1, 2 by its last three.
Model of_external(std::string_view offset = "4", std::string_view length = "12") {
  return {.nodes = {node("Gemm", {"x", "m"}, {"y"})},
          .initializers = {external("m", {3, 1}, "data.bin", offset, length)},
          .inputs = {value("x", {1, 3})},
          .outputs = {value("y", {1, 1})}};
}

}  // namespace

TEST_CASE("external data is read from the model's folder, at its offset, of the length of its extents") {
  const Folder folder;
  write(folder / "data.bin", numbers + "more");
  for (const char* length : {"12", ""}) {
    write(folder / "net.onnx", bytes_of(of_external("4", length)));
    CHECK(output_of(read_onnx(folder / "net.onnx")) == std::vector<double>{8});
  }
}

TEST_CASE("external data is found behind links where the model is one, too") {
  namespace fs = std::filesystem;
  const Folder folder;
  // As caches of downloads have it: both are links to names of another folder.
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshot");
  write(folder / "blobs/1a2b", bytes_of(of_external()));
  write(folder / "blobs/3c4d", numbers);
  fs::create_symlink("../blobs/1a2b", folder / "snapshot/net.onnx");
  fs::create_symlink("../blobs/3c4d", folder / "snapshot/data.bin");
  CHECK(output_of(read_onnx(folder / "snapshot/net.onnx")) == std::vector<double>{8});
  // The data lies beside the file that a link leads to.
  fs::rename(folder / "blobs/3c4d", folder / "blobs/data.bin");
  fs::create_symlink("blobs/1a2b", folder / "net.onnx");
  CHECK(output_of(read_onnx(folder / "net.onnx")) == std::vector<double>{8});
  // A model that is no link has its data in its own folder alone.
  write(folder / "snapshot/own.onnx", bytes_of(of_external()));
  fs::remove(folder / "snapshot/data.bin");
  fs::create_symlink("../blobs/data.bin", folder / "snapshot/data.bin");
  CHECK_THROWS_WITH(read_onnx(folder / "snapshot/own.onnx"),
                    ContainsSubstring("a link out of the folder of the model"));
}

TEST_CASE("numbers that the file has do not count as computed, the second time they do") {
  const Model twice = of_nodes({node("Gemm", {"x", "m"}, {"a"}), node("Gemm", {"a", "m"}, {"y"})}, {1, 3},
                               {tensor("m", {3, 3}, counted(9))});
  CHECK_THROWS_WITH(read(twice, {.most_computed_numbers = 9}), ContainsSubstring("most_computed_numbers"));
  CHECK(read(twice, {.most_computed_numbers = 9 + 6}).graph.nodes().size() == 3);  // and where each column is
}

TEST_CASE("names that are not UTF-8 become such") {
  const Folder folder;
  write(folder / "mod\350le.onnx", bytes_of(of_nodes({node("Relu", {"x"}, {"y"}, {}, "caf\351")}, {1, 2})));
  const OnnxModel model = read_onnx(folder / "mod\350le.onnx");
  CHECK(model.graph.name() == "mod\uFFFDle");
  CHECK(model.graph.nodes().back().name == "caf\uFFFD");
}
