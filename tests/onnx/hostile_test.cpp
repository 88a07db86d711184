// Invalid ONNX files: each is a FileError, and no file makes the reader allocate much more than the file's size.

#include <random>

#include "lamina/error.h"
#include "read_model.h"
#include "tests/io/allocations.h"
#include "tests/support/catch.h"

using namespace lamina::test;

TEST_CASE("bytes that are no ONNX model are a FileError that says what is wrong") {
  const std::string text = "x[1,2,3,3] y = Relu(x)", whole = bytes_of(text);
  Model no_output = text;
  no_output.outputs.clear();
  const std::string lying = "\x3a\xff\xff\xff\xff\x0f";  // a graph that claims more bytes than the file has
  const std::map<std::string, std::string> all = {{"", "no graph"},
                                                  {"hello, this is no model", "model"},
                                                  {whole.substr(0, whole.size() / 2), "truncated"},
                                                  {lying, "truncated"},
                                                  {std::string(20, '\xff'), "truncated"},  // a varint that does not end
                                                  {bytes_of(no_output), "no output"}};
  const Folder folder;
  const auto file = folder / "net.onnx";
  for (const auto& [bytes, says] : all) {
    CAPTURE(bytes);
    write(file, bytes);
    largest_allocation_bytes = 0;
    CHECK_THROWS_MATCHES(read_onnx(file), FileError, Says(file.string(), says));
    CHECK(largest_allocation_bytes < 16 * bytes.size() + 65536);
  }
}

TEST_CASE("a model with many empty parts is refused before it takes many times its size of memory") {
  const Folder folder;
  const std::vector<std::string> empty(100000);
  Model nodes("x[1,2,3,3] y = Relu(x)"), inputs = nodes, tensors = nodes, names = nodes;
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

TEST_CASE("a model with many equal names is read in reasonable time") {
  std::string text = "v0[1,2,3,3] ";
  for (int i = 0; i < 20000; ++i) text += "v" + std::to_string(i + 1) + " = Relu(v" + std::to_string(i) + ") \"same\" ";
  CHECK(read(text).graph.nodes().size() == 20001);
}

TEST_CASE("a model that is cut or has changed bytes is read, or gives one of the library's errors") {
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
    for (unsigned changes = random() % 4 + 1; changes > 0; --changes)
      bytes[random() % bytes.size()] = static_cast<char>(random() % 3 == 0 ? 0xff : random());
    attempt(bytes);
  }
}
