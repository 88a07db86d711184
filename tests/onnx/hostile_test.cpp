// Invalid ONNX files: each is a FileError, and none makes the reader allocate more than its size justifies.

#include <filesystem>
#include <random>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "tests/io/allocations.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"
#include "tests/support/onnx_model.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

const std::string image = "x[1,2,3,3] ", valid = image + "y = Relu(x)", huge = std::to_string(std::int64_t{1} << 40);

std::string conv(const std::string& weights, const std::string& attributes = "group=1") {
  return "x[1,1,4,4] w" + weights + " y = Conv<" + attributes + ">(x, w)";
}

std::string data_at(const std::string& where, const std::string& extents = "[1,1,1,1]") {
  return conv(extents + " @ (" + where + ")");
}

const std::string one = "[1,1,1,1] = 1";

struct Hostile {
  const char* what;
  std::string bytes;
  std::string says;
};

std::vector<Hostile> hostile_files() {
  const std::string whole = bytes_of(conv(one));
  Model no_output = valid;
  no_output.outputs.clear();
  std::string lying(1, '\x3a');  // the graph, of more bytes than there are
  lying += "\xff\xff\xff\xff\x0f";
  std::vector<Hostile> all = {
      {"empty", "", "no graph"},
      {"text", "hello, this is no model", "model"},
      {"cut", whole.substr(0, whole.size() / 2), "truncated"},
      {"a length beyond the file", lying, "truncated"},
      {"a varint without end", std::string(20, '\xff'), "truncated"},
      {"no output", bytes_of(no_output), "no output"},
  };
  const auto add = [&](const char* what, const std::string& text, const std::string& says) {
    all.push_back({what, bytes_of(text), says});
  };
  add("an output that nothing makes", valid + " return z", "'z'");
  add("an input twice", valid + " x[1]", "'x' is a duplicate input");
  add("an input beyond memory", "x[1," + huge + "," + huge + ",1] y = Relu(x)", "'x'");
  add("a cycle", image + "y = Add(x, b) b = Relu(y) return y", "reads 'b'");
  add("a node that reads itself", image + "y = Relu(y)", "reads 'y'");
  add("a value made twice", valid + " y = Relu(x)", "made already");
  add("a node without operator", image + "y = (x)", "no operator");
  add("an initializer twice", valid + " w[1] = 1; w[1] = 1", "duplicate initializer");
  add("more extents than numbers", conv("[1,1,3,3] = 1"), "'w' needs 36 bytes");
  add("extents beyond memory", conv("[" + huge + "," + huge + ",1,1] = 1"), "'w'");
  add("a negative extent", conv("[-1,1,1,1] = 1"), "'w'");
  add("weights of another rank", conv("[1,1] = 1"), "Conv");
  add("groups that do not fit", conv(one, "group=3"), "groups");
  add("a stride of 0", conv(one, "strides=[0,1]"), "strides");
  add("a huge pad", conv(one, "pads=[0,0," + huge + "," + huge + "]"), "pads");
  add("three pads", conv(one, "pads=[1,1,1]"), "pads");
  add("an axis that is not there", image + "y = Concat<axis=7>(x, x)", "axis 7");
  add("a shape that does not fit", image + "s = {5, -1}; y = Reshape(x, s)", "reshapes 1x2x3x3");
  add("a shape of many axes that does not fit", image + "s = {" + text(Extents(100, 5)) + "} y = Reshape(x, s)",
      "x5x5 and 84 more axes");
  add("shapes that are computed beyond memory",
      image + "s = {1048576, 1048576}; w[1] = 1; c = ConstantOfShape(s) t = Transpose(c) d = Mul(t, w) y = Add(x, d)",
      "limit");
  add("a product of more columns than the limit",
      "x[1,1073741824] s = {1073741824, 1} w = ConstantOfShape(s) y = Gemm(x, w)", "limit");
  add("a list that the file does not hold", image + "s = {" + huge + "} w = ConstantOfShape(s) y = Reshape(x, w)",
      "equal numbers");
  add("data in a parent folder", data_at("../data.bin"), "folder");
  add("data in a parent of a folder", data_at("a/../../data.bin"), "folder");
  add("data at an absolute path", data_at("/etc/hostname"), "folder");
  add("data without a file", data_at("data.bin"), "no such file");
  add("data beyond its file", data_at("four.bin, 4, 4"), "'four.bin' has 4");
  add("data at a huge offset", data_at("four.bin, 18446744073709551615, 4"), "'four.bin' has 4");
  add("data at no number", data_at("four.bin, -4, 4"), "'-4'");
  add("data of another length", data_at("four.bin", "[1,1,2,2]"), "needs 16 bytes");
  add("data of another length by the file", data_at("four.bin, 0, 2"), "needs 4 bytes by its extents, and has 2");
  add("data behind a link", data_at("link.bin"), "link");
  add("a folder as data", data_at("."), "not a regular file");
  return all;
}

}  // namespace

TEST_CASE("an invalid model is a FileError that says what is wrong") {
  const Folder folder, elsewhere;
  write(elsewhere / "secret.bin", "four");
  write(folder / "four.bin", "four");
  std::filesystem::create_symlink(elsewhere / "secret.bin", folder / "link.bin");
  for (const Hostile& its : hostile_files()) {
    CAPTURE(its.what);
    const auto file = folder / "net.onnx";
    write(file, its.bytes);
    largest_allocation_bytes = 0;
    CHECK_THROWS_AS(read_onnx(file), FileError);
    CHECK_THROWS_WITH(read_onnx(file), ContainsSubstring(file.string()) || ContainsSubstring(folder.path().string()));
    CHECK_THROWS_WITH(read_onnx(file), ContainsSubstring(its.says));
    CHECK(largest_allocation_bytes < 16 * its.bytes.size() + 65536);
  }
}

TEST_CASE("a model of many empty parts is refused before they take more memory than a multiple of it") {
  const Folder folder;
  const std::vector<std::string> empty(100000);
  Model nodes = valid, inputs = valid, tensors = valid, names = valid;
  nodes.nodes = empty;
  inputs.inputs = empty;
  tensors.initializers = empty;
  Writer node(names.nodes.emplace_back());
  for (const std::string& name : empty) node.add_string(1, name);
  for (const Model& model : {nodes, inputs, tensors, names}) {
    const std::string bytes = bytes_of(model);
    write(folder / "net.onnx", bytes);
    largest_allocation_bytes = 0;
    CHECK_THROWS_AS(read_onnx(folder / "net.onnx"), FileError);
    CHECK(largest_allocation_bytes < 10 * bytes.size());
  }
}

TEST_CASE("a model of many names that are equal is read in reasonable time") {
  std::string text = "v0[1,2,3,3] ";
  for (int i = 0; i < 20000; ++i) text += "v" + std::to_string(i + 1) + " = Relu(v" + std::to_string(i) + ") \"same\" ";
  const Folder folder;
  write(folder / "net.onnx", bytes_of(text));
  CHECK(read_onnx(folder / "net.onnx").graph.nodes().size() == 20001);
}

TEST_CASE("a model that is cut or has other bytes is read, or is one of the library's errors") {
  const std::string whole = bytes_of(R"(
    x[batch,1,4,4] w[1,1,2,2] = 1..; zero = {0}; rest = {-1}; m[9,2] = all 1
    c = Conv<pads=[1,1,0,0]>(x, w) "conv1" r = Relu(c) p = MaxPool<kernel_shape=[2,2], ceil_mode=1>(r) s = Shape(p)
    n = Gather(s, zero) to = Concat<axis=0>(n, rest) f = Reshape(p, to) g = Gemm(f, m) y = Softmax(g))");
  const Folder folder;
  const auto file = folder / "net.onnx";
  int fine = 0;
  const auto attempt = [&](const std::string& bytes) {
    write(file, bytes);
    largest_allocation_bytes = 0;
    try {
      read_onnx(file, {.most_computed_numbers = 4096});
      ++fine;
    } catch (const Error&) {
    }
    CHECK(largest_allocation_bytes < 65536 + 16 * bytes.size());
  };
  attempt(whole);
  REQUIRE(fine == 1);
  for (std::size_t length = 0; length < whole.size(); ++length) attempt(whole.substr(0, length));
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes = whole;
    for (unsigned changes = random() % 4 + 1; changes > 0; --changes) {
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    }
    attempt(bytes);
  }
}
