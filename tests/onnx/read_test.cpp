// read_onnx on handmade models that are not in onnx_models.txt.

#include "lamina/error.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// x -> Conv -> Relu -> Reshape to a shape that ops compute -> MatMul -> Add.
const std::string small_network = R"(
  w[2,1,3,3] = 0..; zero = {0}; rest = {-1}; m[8,3] = 0..; b[3] = 1..
  c = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w) "conv1" r = Relu(c) shape = Shape(r) n = Gather(shape, zero)
  wanted = Concat<axis=0>(n, rest) flat = Reshape(r, wanted) product = MatMul(flat, m) "fc" y = Add(product, b)
  x)";  // the extents of x follow

}  // namespace

TEST_CASE("a model becomes a graph with the model's names and batch, and weights with the graph's names") {
  const OnnxModel model = read(small_network + "[n,1,2,2]", {.batch = 2});
  CHECK(model.graph.name() == "net");
  REQUIRE(model.graph.nodes().size() == 4);
  CHECK(model.graph.node("x").shape == Shape{2, 1, 2, 2});
  CHECK(model.graph.node("conv1").op == Op(Conv{.channels = 2, .kernel = 3, .pad = 1, .bias = false}));
  CHECK(model.graph.node("r").op == Op(Relu{}));
  CHECK(model.graph.node("fc").op == Op(FullyConnected{.outputs = 3}));
  CHECK(model.weights.at("conv1.weight").extents == Extents{2, 1, 3, 3});
  CHECK(model.weights.at("fc.weight").extents == Extents{3, 8});
  CHECK(model.weights.at("fc.weight").values[1] == 3);  // the transposed weights of the file
  CHECK(model.weights.at("fc.bias").values == Values{1, 2, 3});
  CHECK(model.output.extents == Extents{2, 3});
  CHECK(model.replaced_batch == 0);
  CHECK(read(small_network + "[4,1,2,2]", {.batch = 2}).replaced_batch == 4);
}

TEST_CASE("the open extents of a file are listed") {
  const Folder folder;
  write(folder / "net.onnx",
        bytes_of("x[n,1,height,width] w[initialized] other[n,wide] w[1,1,1,1] = 2; y = Conv(x, w)"));
  Names names;
  for (const OnnxOpenExtent& open : onnx_open_extents(folder / "net.onnx")) {
    names.push_back(open.name);
    CHECK(open.batch == (open.name == "n"));
  }
  CHECK(names == Names{"n", "height", "width", "wide"});
}

TEST_CASE("pads that differ at the two ends give the results of the definition") {
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

TEST_CASE("weights that the file lacks can be given as constants") {
  const std::string model = "x[1,2] m[1,2] y = Gemm<transB=1>(x, m)";
  CHECK_THROWS_AS(read(model), Unsupported);
  const HostTensor m{.dtype = DType::f32, .extents = {1, 2}, .values = {3, 5}};
  CHECK(output_of(read(model, {.constants = {{"m", m}}})) == Values{5});
  CHECK_THROWS_AS(read(model, {.constants = {{"k", m}}}), UsageError);
}

namespace {

/// The contents of a file of external data: 9, 1, 2, 3.
const std::string numbers = [] {
  const std::vector<float> values = {9, 1, 2, 3};
  return std::string(reinterpret_cast<const char*>(values.data()), 16);
}();

/// A model whose x is multiplied by the last three of `numbers`.
std::string of_external(const std::string& length = "12") {
  return bytes_of("x[1,3] m[3,1] @ (data.bin, 4, " + length + ") y = Gemm(x, m)");
}

}  // namespace

TEST_CASE("external data is read from the model's folder, at its offset, with the length of its extents") {
  const Folder folder;
  write(folder / "data.bin", numbers + "more");
  for (const char* length : {"12", ""}) {
    write(folder / "net.onnx", of_external(length));
    CHECK(output_of(read_onnx(folder / "net.onnx")) == Values{8});
  }
}

TEST_CASE("external data may be a link if the model is a link, too") {
  namespace fs = std::filesystem;
  const Folder folder;
  // In caches of downloads, both files are links into another folder.
  fs::create_directories(folder / "blobs");
  fs::create_directories(folder / "snapshot");
  write(folder / "blobs/1a2b", of_external());
  write(folder / "blobs/3c4d", numbers);
  fs::create_symlink("../blobs/1a2b", folder / "snapshot/net.onnx");
  fs::create_symlink("../blobs/3c4d", folder / "snapshot/data.bin");
  CHECK(output_of(read_onnx(folder / "snapshot/net.onnx")) == Values{8});
  // The data may also be beside the file that the model's link leads to.
  fs::rename(folder / "blobs/3c4d", folder / "blobs/data.bin");
  fs::create_symlink("blobs/1a2b", folder / "net.onnx");
  CHECK(output_of(read_onnx(folder / "net.onnx")) == Values{8});
  // If the model is no link, its data must be in its own folder.
  write(folder / "snapshot/own.onnx", of_external());
  fs::remove(folder / "snapshot/data.bin");
  fs::create_symlink("../blobs/data.bin", folder / "snapshot/data.bin");
  CHECK_THROWS_WITH(read_onnx(folder / "snapshot/own.onnx"),
                    ContainsSubstring("a link out of the folder of the model"));
}

TEST_CASE("names that are not UTF-8 are converted to valid UTF-8") {
  const Folder folder;
  write(folder / "mod\350le.onnx", bytes_of("x[1,2] y = Relu(x) \"caf\351\""));
  const OnnxModel model = read_onnx(folder / "mod\350le.onnx");
  CHECK(model.graph.name() == "mod\uFFFDle");
  CHECK(model.graph.nodes().back().name == "caf\uFFFD");
}

TEST_CASE("unsupported nodes are reported by operator, with their number and the first name, in at most ten lines") {
  std::string model = "v0[1,4]";
  for (int i = 0; i < 40; ++i) {
    const std::string from = "v" + std::to_string(i), to = " v" + std::to_string(i + 1);
    model += to + " = " + (i % 2 == 0 ? "Swish" : "Odd" + std::to_string(i % 20)) + "(" + from + ") \"node " +
             std::to_string(i) + "\"";
  }
  const std::string text = said_by<Unsupported>([&] { read(model); });
  const std::string all = said_by<Unsupported>([&] { read(model, {.all_refusals = true}); });
  CHECK(std::ranges::count(text, '\n') == 8);
  CHECK_THAT(text, ContainsSubstring("40 things are not supported") &&
                       ContainsSubstring("\n  20 Swish, first 'node 0' (opset 17): this operator") &&
                       ContainsSubstring("2 Odd11, first 'node 11'; 2 Odd13"));
  CHECK(std::ranges::count(all, '\n') == 41);
  for (int i = 0; i < 40; ++i) {
    CHECK_THAT(all, ContainsSubstring("'node " + std::to_string(i) + "' ("));
    if (i % 2 == 1) CHECK_THAT(text, ContainsSubstring("2 Odd" + std::to_string(i % 20) + ", first"));
  }
}
