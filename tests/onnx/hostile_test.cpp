// Invalid ONNX files: each is a FileError, and none makes the reader allocate more than its size justifies.

#include <filesystem>
#include <random>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "model.h"
#include "tests/io/allocations.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

constexpr std::int64_t huge = std::int64_t{1} << 40;

Model relu() {
  return {.nodes = {node("Relu", {"x"}, {"y"})},
          .initializers = {},
          .inputs = {value("x", {1, 2, 3, 3})},
          .outputs = {value("y", {})}};
}

Model conv(const std::string& weights, std::vector<Attribute> attributes = {}) {
  return {.nodes = {node("Conv", {"x", "w"}, {"y"}, std::move(attributes))},
          .initializers = {weights},
          .inputs = {value("x", {1, 1, 4, 4})},
          .outputs = {value("y", {})}};
}

Model with_nodes(std::vector<std::string> nodes, std::vector<std::string> initializers = {}) {
  return {.nodes = std::move(nodes),
          .initializers = std::move(initializers),
          .inputs = {value("x", {1, 2, 3, 3})},
          .outputs = {value("y", {})}};
}

/// A node that reads x, of those extents, and w, equal numbers of extents that the file does not hold.
Model of_equal_numbers(const std::string& reader, const Extents& x, const Extents& w) {
  return {.nodes = {node("ConstantOfShape", {"extents"}, {"w"}), reader},
          .initializers = {integers("extents", w)},
          .inputs = {value("x", x)},
          .outputs = {value("y", {})}};
}

struct Hostile {
  const char* what;
  std::string bytes;
  std::string says;
};

std::vector<Hostile> hostile_files() {
  const std::string whole = bytes_of(conv(tensor("w", {1, 1, 1, 1}, {1})));
  Model twice = relu(), no_output = relu(), no_maker = relu(), open = relu();
  twice.inputs.push_back(value("x", {1}));
  no_output.outputs.clear();
  no_maker.outputs = {value("z", {})};
  open.inputs = {value("x", {1, huge, huge, 1})};
  std::string lying(1, '\x3a');  // the graph, of more bytes than there are
  lying += "\xff\xff\xff\xff\x0f";
  return {
      {"empty", "", "no graph"},
      {"text", "hello, this is no model", "model"},
      {"cut", whole.substr(0, whole.size() / 2), "truncated"},
      {"a length beyond the file", lying, "truncated"},
      {"a varint without end", std::string(20, '\xff'), "truncated"},
      {"no output", bytes_of(no_output), "no output"},
      {"an output that nothing makes", bytes_of(no_maker), "'z'"},
      {"an input twice", bytes_of(twice), "'x' is a duplicate input"},
      {"an input beyond memory", bytes_of(open), "'x'"},
      {"a cycle", bytes_of(with_nodes({node("Add", {"x", "b"}, {"y"}), node("Relu", {"y"}, {"b"})})), "reads 'b'"},
      {"a node that reads itself", bytes_of(with_nodes({node("Relu", {"y"}, {"y"})})), "reads 'y'"},
      {"a value made twice", bytes_of(with_nodes({node("Relu", {"x"}, {"y"}), node("Relu", {"x"}, {"y"})})),
       "made already"},
      {"a node without operator", bytes_of(with_nodes({node("", {"x"}, {"y"})})), "no operator"},
      {"an initializer twice",
       bytes_of(with_nodes({node("Relu", {"x"}, {"y"})}, {tensor("w", {1}, {1}), tensor("w", {1}, {1})})),
       "duplicate initializer"},
      {"more extents than numbers", bytes_of(conv(tensor("w", {1, 1, 3, 3}, {1}))), "'w' needs 36 bytes"},
      {"extents beyond memory", bytes_of(conv(tensor("w", {huge, huge, 1, 1}, {1}))), "'w'"},
      {"a negative extent", bytes_of(conv(tensor("w", {-1, 1, 1, 1}, {1}))), "'w'"},
      {"weights of another rank", bytes_of(conv(tensor("w", {1, 1}, {1}))), "Conv"},
      {"groups that do not fit", bytes_of(conv(tensor("w", {1, 1, 1, 1}, {1}), {{"group", std::int64_t{3}}})),
       "groups"},
      {"a stride of 0", bytes_of(conv(tensor("w", {1, 1, 1, 1}, {1}), {{"strides", Extents{0, 1}}})), "strides"},
      {"a huge pad", bytes_of(conv(tensor("w", {1, 1, 1, 1}, {1}), {{"pads", Extents{0, 0, huge, huge}}})), "pads"},
      {"three pads", bytes_of(conv(tensor("w", {1, 1, 1, 1}, {1}), {{"pads", Extents{1, 1, 1}}})), "pads"},
      {"an axis that is not there",
       bytes_of(with_nodes({node("Concat", {"x", "x"}, {"y"}, {{"axis", std::int64_t{7}}})})), "axis 7"},
      {"a shape that does not fit",
       bytes_of(with_nodes({node("Reshape", {"x", "s"}, {"y"})}, {integers("s", {5, -1})})), "reshapes 1x2x3x3"},
      {"a shape of many axes that does not fit",
       bytes_of(with_nodes({node("Reshape", {"x", "s"}, {"y"})}, {integers("s", Extents(100, 5))})),
       "x5x5 and 84 more axes"},
      {"shapes that are computed beyond memory",
       bytes_of(with_nodes({node("ConstantOfShape", {"s"}, {"c"}), node("Transpose", {"c"}, {"t"}),
                            node("Mul", {"t", "w"}, {"d"}), node("Add", {"x", "d"}, {"y"})},
                           {integers("s", {1 << 20, 1 << 20}), tensor("w", {1}, {1})})),
       "limit"},
      {"a product of more columns than the limit",
       bytes_of(of_equal_numbers(node("Gemm", {"x", "w"}, {"y"}), {1, 1 << 30}, {1 << 30, 1})), "limit"},
      {"a list that the file does not hold",
       bytes_of(of_equal_numbers(node("Reshape", {"x", "w"}, {"y"}), {1, 2, 3, 3}, {huge})), "equal numbers"},
      {"data in a parent folder", bytes_of(conv(external("w", {1, 1, 1, 1}, "../data.bin"))), "folder"},
      {"data in a parent of a folder", bytes_of(conv(external("w", {1, 1, 1, 1}, "a/../../data.bin"))), "folder"},
      {"data at an absolute path", bytes_of(conv(external("w", {1, 1, 1, 1}, "/etc/hostname"))), "folder"},
      {"data without a file", bytes_of(conv(external("w", {1, 1, 1, 1}, "data.bin"))), "no such file"},
      {"data beyond its file", bytes_of(conv(external("w", {1, 1, 1, 1}, "four.bin", "4", "4"))), "'four.bin' has 4"},
      {"data at a huge offset", bytes_of(conv(external("w", {1, 1, 1, 1}, "four.bin", "18446744073709551615", "4"))),
       "'four.bin' has 4"},
      {"data at no number", bytes_of(conv(external("w", {1, 1, 1, 1}, "four.bin", "-4", "4"))), "'-4'"},
      {"data of another length", bytes_of(conv(external("w", {1, 1, 2, 2}, "four.bin"))), "needs 16 bytes"},
      {"data of another length by the file", bytes_of(conv(external("w", {1, 1, 1, 1}, "four.bin", "0", "2"))),
       "needs 4 bytes by its extents, and has 2"},
      {"data behind a link", bytes_of(conv(external("w", {1, 1, 1, 1}, "link.bin"))), "link"},
      {"a folder as data", bytes_of(conv(external("w", {1, 1, 1, 1}, "."))), "not a regular file"},
  };
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
  const auto attempt = [&](Model model) {
    const std::string bytes = bytes_of(model);
    write(folder / "net.onnx", bytes);
    largest_allocation_bytes = 0;
    CHECK_THROWS_AS(read_onnx(folder / "net.onnx"), FileError);
    CHECK(largest_allocation_bytes < 10 * bytes.size());
  };
  const std::vector<std::string> empty(100000);
  Model nodes = relu(), inputs = relu(), tensors = relu(), names = relu();
  nodes.nodes = empty;
  inputs.inputs = empty;
  tensors.initializers = empty;
  protozero::pbf_writer node(names.nodes.emplace_back());
  for (const std::string& name : empty) node.add_string(1, name);
  for (const Model& model : {nodes, inputs, tensors, names}) attempt(model);
}

TEST_CASE("a model of many names that are equal is read in reasonable time") {
  Model model = relu();
  model.nodes.clear();
  std::string last = "x";
  for (int i = 0; i < 20000; ++i) {
    const std::string next = "v" + std::to_string(i);
    model.nodes.push_back(node("Relu", {last}, {next}, {}, "same"));
    last = next;
  }
  model.outputs = {value(last, {})};
  const Folder folder;
  write(folder / "net.onnx", bytes_of(model));
  CHECK(read_onnx(folder / "net.onnx").graph.nodes().size() == 20001);
}

TEST_CASE("a model that is cut or has other bytes is read, or is one of the library's errors") {
  Model model{
      .nodes = {node("Conv", {"x", "w"}, {"c"}, {{"pads", Extents{1, 1, 0, 0}}}, "conv1"), node("Relu", {"c"}, {"r"}),
                node("MaxPool", {"r"}, {"p"}, {{"kernel_shape", Extents{2, 2}}, {"ceil_mode", std::int64_t{1}}}),
                node("Shape", {"p"}, {"s"}), node("Gather", {"s", "zero"}, {"n"}),
                node("Concat", {"n", "rest"}, {"to"}, {{"axis", std::int64_t{0}}}), node("Reshape", {"p", "to"}, {"f"}),
                node("Gemm", {"f", "m"}, {"g"}), node("Softmax", {"g"}, {"y"})},
      .initializers = {tensor("w", {1, 1, 2, 2}, {1, 2, 3, 4}), integers("zero", {0}), integers("rest", {-1}),
                       tensor("m", {9, 2}, std::vector<float>(18, 1))},
      .inputs = {value("x", {0, 1, 4, 4})},
      .outputs = {value("y", {})}};
  const std::string whole = bytes_of(model);
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
