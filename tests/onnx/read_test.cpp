// What read_onnx makes of models by hand: names, shapes, folded chains, views, refusals.

#include "lamina/onnx.h"

#include "lamina/error.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

/// x -> Conv -> Relu -> flattened by a chain of shapes -> MatMul -> Add.
const std::string small_network = R"(
  w[2,1,3,3] = 0..; zero = {0}; rest = {-1}; m[8,3] = 0..; b[3] = 1..
  c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w) "conv1" r = Relu(c) shape = Shape(r) n = Gather(shape, zero)
  wanted = Concat<axis=0>(n, rest) flat = Reshape(r, wanted) product = MatMul(flat, m) "fc" y = Add(product, b)
  x)";  // and the extents of x

}  // namespace

TEST_CASE("a model becomes a graph with its names, its batch, and its weights by the graph's names") {
  const OnnxModel model = read(small_network + "[n,1,2,2]", {.batch = 2});
  CHECK(model.graph.name() == "net");
  REQUIRE(model.graph.nodes().size() == 4);
  CHECK(model.graph.node("x").shape == Shape{2, 1, 2, 2});
  CHECK(model.graph.node("conv1").op == Op(Conv{.channels = 2, .kernel = 3, .pad = 1, .bias = false}));
  CHECK(model.graph.node("r").op == Op(Relu{}));
  CHECK(model.graph.node("fc").op == Op(FullyConnected{.outputs = 3}));
  CHECK(model.weights.at("conv1.weight").extents == Extents{2, 1, 3, 3});
  CHECK(model.weights.at("fc.weight").extents == Extents{3, 8});
  CHECK(model.weights.at("fc.weight").values[1] == 3);  // the transpose of the file's
  CHECK(model.weights.at("fc.bias").values == Values{1, 2, 3});
  CHECK(model.output.extents == Extents{2, 3});
}

TEST_CASE("an open batch is 1, a given batch replaces the file's batch") {
  CHECK(read(small_network + "[n,1,2,2]").graph.node("x").shape.n == 1);
  CHECK(read(small_network + "[4,1,2,2]").graph.node("x").shape.n == 4);
  CHECK(read(small_network + "[4,1,2,2]", {.batch = 3}).output.extents == Extents{3, 3});
}

TEST_CASE("the operators determine which axis is the batch, and a note says so if it is not the first") {
  const std::string lstm = "w[1,8,3] = all 0; r[1,8,2] = all 0; table[5,3] = all 0; y = LSTM<hidden_size=2>(s, w, r)";
  const auto time_first = [&](const std::string& x) { return "x" + x + " s = Identity(x) " + lstm; };
  const OnnxModel read_for_4 = read(time_first("[7,2,3]"), {.batch = 4});
  CHECK(read_for_4.inputs[0].extents == Extents{7, 4, 3});
  CHECK(read_for_4.graph.nodes()[0].shape == Shape{4, 3, 7, 1});
  CHECK(read_for_4.replaced_batch == 2);
  CHECK(read_for_4.notes == Names{"'x' has its batch at axis 1"});
  CHECK(read(time_first("[steps,batch,3]"), {.batch = 4, .extents = {{"steps", 9}}}).inputs[0].extents ==
        Extents{9, 4, 3});
  CHECK(read("x[7,2] s = Gather(table, x) " + lstm, {.batch = 4}).inputs[0].extents == Extents{7, 4});
  const OnnxModel batch_first = read("x[2,7,3] s = Transpose<perm=[1,0,2]>(x) " + lstm, {.batch = 4});
  CHECK(batch_first.inputs[0].extents == Extents{4, 7, 3});
  CHECK(batch_first.notes.empty());

  const auto image = [](const std::string& axis, const std::string& filter) {
    return "opset 12; x[3,5,6] f" + filter + " = all 0; i = Unsqueeze<axes=[" + axis + "]>(x) y = Conv(i, f)";
  };
  const OnnxModel one = read(image("0", "[1,3,1,1]"));
  CHECK(one.graph.nodes()[0].shape == Shape{1, 3, 5, 6});
  CHECK(one.notes[0] == "'x' is one image: it has no batch");
  CHECK_THROWS_AS(read(image("0", "[1,3,1,1]"), {.batch = 2}), UsageError);
  CHECK(read(image("1", "[3,1,1,1]"), {.batch = 4}).graph.nodes()[0].shape == Shape{4, 1, 5, 6});
  const std::string plain = "x[2,3] y = Relu(x)";
  CHECK(read(plain, {.batch = 4, .batch_axes = {{"x", 1}}}).inputs[0].extents == Extents{2, 4});
  CHECK_THROWS_AS(read(plain, {.batch_axes = {{"x", 2}}}), UsageError);
}

TEST_CASE("an axis that the file leaves open needs an extent by its name") {
  const std::string model = "x[1,batch] y = Relu(x)";
  CHECK_THROWS_WITH(read(model),
                    ContainsSubstring("'batch' (axis 1 of 'x') open: give its extent in OnnxOptions::extents"));
  CHECK(read(model, {.extents = {{"batch", 7}}}).graph.node("x").shape == Shape{1, 7, 1, 1});
}

TEST_CASE("the open extents of a file are listed, all missing extents are named, and unknown names are refused") {
  const std::string model = "x[n,1,height,width] w[initialized] other[n,wide] w[1,1,1,1] = 2; y = Conv(x, w)";
  const Folder folder;
  write(folder / "net.onnx", bytes_of(model));
  Names names;
  for (const OnnxOpenExtent& open : onnx_open_extents(folder / "net.onnx")) {
    names.push_back(open.name);
    CHECK(open.batch == (open.name == "n"));
  }
  CHECK(names == Names{"n", "height", "width", "wide"});
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
                          ContainsSubstring("valid names: 'n', 'height', 'width', 'wide'"));
  }
  CHECK_THROWS_WITH(read("x[1,2] y = Relu(x)", {.extents = {{"batch", 2}}}),
                    ContainsSubstring("'batch' of OnnxOptions::extents names no open axis; none is open"));
}

TEST_CASE("pads that differ at the two ends give the sums of the definition") {
  for (const Extents& pads : {Extents{0, 1, 1, 0}, Extents{1, 0, 0, 2}, Extents{0, 0, 1, 1}, Extents{2, 1, 1, 1}}) {
    for (const std::int64_t stride : {1, 2}) {
      const OnnxModel model = read("x[1,1,5,6] w[1,1,2,3] = 1..; y = Conv<pads=[" + text(pads) + "], strides=[" +
                                   text({stride, stride}) + "]>(x, w)");
      Values expected;
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
      CHECK(output_of(model) == expected);
    }
  }
}

TEST_CASE("everything that is not supported is named at once: node, operator, opset") {
  const std::string model = R"(
    x[n,1,8,8] c = Cumulate(x) "first one" u = Relu(c) v = Clip(x) "fine"
    p, at = MaxPool<kernel_shape=[2,2], storage_order=1>(v) "pool" end = Einsum(u, p, at) "second one")";
  CHECK_THROWS_AS(read(model), Unsupported);
  CHECK_THROWS_WITH(read(model),
                    ContainsSubstring("'first one' (Cumulate, opset 17)") &&
                        ContainsSubstring("'pool' (MaxPool, opset 17)") &&
                        ContainsSubstring("'second one' (Einsum, opset 17)") &&
                        ContainsSubstring("not judged, because they follow those above: 1 Relu, first 'u'"));
}

TEST_CASE("nodes that the output does not need are not read") {
  CHECK(read(small_network + "[n,1,2,2] unused = Nonsense(c) return y").graph.nodes().size() == 4);
}

TEST_CASE("a file with several outputs gives the requested output") {
  const std::string model = small_network + "[n,1,2,2] return y, r";
  CHECK_THROWS_WITH(read(model), ContainsSubstring("'y', 'r'") && ContainsSubstring("name one in OnnxOptions::output"));
  CHECK_THROWS_AS(read(model), UsageError);
  CHECK(read(model, {.output = "r"}).output.extents == Extents{1, 2, 2, 2});
  CHECK_THROWS_AS(read(model, {.output = "c"}), UsageError);
}

TEST_CASE("weights that the file leaves to its caller are given as constants") {
  const std::string model = "x[1,2] m[1,2] y = Gemm<transB=1>(x, m)";
  CHECK_THROWS_AS(read(model), Unsupported);
  const HostTensor m{.dtype = DType::f32, .extents = {1, 2}, .values = {3, 5}};
  CHECK(output_of(read(model, {.constants = {{"m", m}}})) == Values{5});
  CHECK_THROWS_AS(read(model, {.constants = {{"k", m}}}), UsageError);
}

namespace {

/// Numbers for a file of external data: 9, then 1, 2, 3.
const std::string numbers = [] {
  const std::vector<float> values = {9, 1, 2, 3};
  return std::string(reinterpret_cast<const char*>(values.data()), 16);
}();

/// The product of 0, 1, 2 by its last three.
std::string of_external(const std::string& length = "12") {
  return bytes_of("x[1,3] m[3,1] @ (data.bin, 4, " + length + ") y = Gemm(x, m)");
}

}  // namespace

TEST_CASE("external data is read from the model's folder, at its offset, of the length of its extents") {
  const Folder folder;
  write(folder / "data.bin", numbers + "more");
  for (const char* length : {"12", ""}) {
    write(folder / "net.onnx", of_external(length));
    CHECK(output_of(read_onnx(folder / "net.onnx")) == Values{8});
  }
}

TEST_CASE("external data is found behind links where the model is one, too") {
  namespace fs = std::filesystem;
  const Folder folder;
  // As caches of downloads have it: both are links to names of another folder.
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshot");
  write(folder / "blobs/1a2b", of_external());
  write(folder / "blobs/3c4d", numbers);
  fs::create_symlink("../blobs/1a2b", folder / "snapshot/net.onnx");
  fs::create_symlink("../blobs/3c4d", folder / "snapshot/data.bin");
  CHECK(output_of(read_onnx(folder / "snapshot/net.onnx")) == Values{8});
  // The data lies beside the file that a link leads to.
  fs::rename(folder / "blobs/3c4d", folder / "blobs/data.bin");
  fs::create_symlink("blobs/1a2b", folder / "net.onnx");
  CHECK(output_of(read_onnx(folder / "net.onnx")) == Values{8});
  // A model that is no link has its data in its own folder alone.
  write(folder / "snapshot/own.onnx", of_external());
  fs::remove(folder / "snapshot/data.bin");
  fs::create_symlink("../blobs/data.bin", folder / "snapshot/data.bin");
  CHECK_THROWS_WITH(read_onnx(folder / "snapshot/own.onnx"),
                    ContainsSubstring("a link out of the folder of the model"));
}

TEST_CASE("numbers from the file count as computed only from their second reading on") {
  const std::string twice = "x[1,3] m[3,3] = 0..; a = Gemm(x, m) y = Gemm(a, m)";
  CHECK_THROWS_WITH(read(twice, {.most_computed_numbers = 9}), ContainsSubstring("most_computed_numbers"));
  // 9 for the second reading of m, and 3 column places for each Gemm
  CHECK(read(twice, {.most_computed_numbers = 9 + 6}).graph.nodes().size() == 3);
}

TEST_CASE("names that are not UTF-8 become such") {
  const Folder folder;
  write(folder / "mod\350le.onnx", bytes_of("x[1,2] y = Relu(x) \"caf\351\""));
  const OnnxModel model = read_onnx(folder / "mod\350le.onnx");
  CHECK(model.graph.name() == "mod\uFFFDle");
  CHECK(model.graph.nodes().back().name == "caf\uFFFD");
}
