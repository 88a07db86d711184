// What an error says of a model that is not read: every operator, nothing that is not so.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

std::string refusal(const Model& model, const OnnxOptions& options = {}) {
  try {
    read(model, options);
  } catch (const Unsupported& error) {
    return error.what();
  }
  return "it was read";
}

Model with_values(Model model, std::vector<std::string> values) {
  model.values = std::move(values);
  return model;
}

}  // namespace

TEST_CASE("nodes behind one that is not read are judged by the extents that the file states") {
  // An FPN's sum: the second operand has twice the rows and columns of what it is made of.
  const std::vector<std::string> nodes = {
      node("MaxPool", {"x"}, {"p"}, {{"kernel_shape", Extents{2, 2}}, {"strides", Extents{2, 2}}}),
      node("Upsample", {"p"}, {"u"}), node("Add", {"x", "u"}, {"s"}), node("Conv", {"s", "w"}, {"y"})};
  const Model model = of_nodes(nodes, {2, 1, 4, 4}, {tensor("w", {1, 1, 1, 1}, {1})});
  const std::string stated = refusal(with_values(model, {value("u", {2, 1, 4, 4})}));
  CHECK_THAT(stated, ContainsSubstring("1 thing is not supported:\n  'u' (Upsample, opset 17): this operator"));
  CHECK_THAT(stated, !ContainsSubstring("Add") && !ContainsSubstring("not judged"));
  // Also where another batch is wanted than the file's.
  const std::string of_three = refusal(with_values(model, {value("u", {2, 1, 4, 4})}), {.batch = 3});
  CHECK_THAT(of_three,
             ContainsSubstring("'u' (Upsample") && !ContainsSubstring("Add") && !ContainsSubstring("not judged"));
  const std::string unknown = refusal(model);
  CHECK_THAT(unknown, ContainsSubstring("1 thing is not supported"));
  CHECK_THAT(unknown, ContainsSubstring("not judged, as they are behind these: 1 Add, first 's'; 1 Conv, first 'y'"));
  CHECK_THAT(refusal(with_values(model, {value("u", {2, 1, 2, 2})})), ContainsSubstring("it adds 2x1x4x4 and 2x1x2x2"));
}

TEST_CASE("an open extent that the file states is that of the input by its name") {
  const Model model{.nodes = {node("Upsample", {"x"}, {"u"}), node("Add", {"x", "u"}, {"y"})},
                    .initializers = {},
                    .inputs = {value("x", {0, 2, 0}, {"n", "steps"})},
                    .outputs = {value("y", {})},
                    .values = {value("u", {0, 2, 0}, {"n", "steps"})}};
  CHECK_THAT(refusal(model, {.extents = {{"steps", 5}}}), !ContainsSubstring("Add"));
  Model other = model;
  other.values = {value("u", {0, 2, 0}, {"n", "nobody's"})};
  CHECK_THAT(refusal(other, {.extents = {{"steps", 5}}}),
             ContainsSubstring("not judged, as they are behind these: 1 Add"));
}

TEST_CASE("functions of single elements keep the extents of their operand") {
  const Model model =
      of_nodes({node("Elu", {"x"}, {"e"}), node("Conv", {"e", "w"}, {"c"}),
                node("MaxPool", {"c"}, {"p"}, {{"kernel_shape", Extents{2, 2}}, {"dilations", Extents{2, 2}}}),
                node("Add", {"c", "p"}, {"y"})},
               {1, 2, 4, 4}, {tensor("w", {1, 2, 1, 1}, {1, 2})});
  const std::string text = refusal(model);
  CHECK_THAT(text, ContainsSubstring("'e' (Elu, opset 17)") && ContainsSubstring("'p' (MaxPool, opset 17): dilations"));
  CHECK_THAT(text, ContainsSubstring("behind these: 1 Add, first 'y'") && !ContainsSubstring("Conv"));
}

TEST_CASE("what depends on the order in which an unknown value would be kept is not judged, but named") {
  const Model model =
      of_nodes({node("Attention", {"x"}, {"a"}), node("Softmax", {"a"}, {"s"}, {{"axis", std::int64_t{-1}}}),
                node("Flatten", {"s"}, {"f"}), node("Conv", {"a", "w"}, {"c"}), node("Sum", {"f", "c"}, {"y"})},
               {1, 2, 3, 4}, {tensor("w", {1, 2, 1, 1}, {1, 2})});
  const std::string text = refusal(with_values(model, {value("a", {1, 2, 3, 4}), value("c", {1, 1, 3, 4})}));
  CHECK_THAT(text, ContainsSubstring("it adds 1x24 and 1x1x3x4") && ContainsSubstring("behind these: 1 Conv, first"));
}

TEST_CASE("behind a constant that is not computed both factors of a product are still computed values") {
  const Model model = of_nodes({node("BitShift", {"five", "three"}, {"two"}), node("Reshape", {"x", "two"}, {"r"}),
                                node("MatMul", {"r", "r"}, {"m"}), node("Softmax", {"m"}, {"y"})},
                               {1, 4}, {integers("five", {5}), integers("three", {3})});
  CHECK_THAT(refusal(model), ContainsSubstring("'two' (BitShift, opset 17)") &&
                                 ContainsSubstring("'m' (MatMul, opset 17): both its factors are computed") &&
                                 ContainsSubstring("behind these: 1 Reshape, first 'r'; 1 Softmax, first 'y'"));
}

TEST_CASE("nodes of one operator are told by their number and the first one's name, in ten lines at most") {
  Model model = of_nodes({}, {1, 4});
  for (int i = 0; i < 40; ++i) {
    const std::string from = i == 0 ? "x" : "v" + std::to_string(i), to = i == 39 ? "y" : "v" + std::to_string(i + 1);
    const std::string op = i % 2 == 0 ? "Mish" : "Odd" + std::to_string(i % 20);
    model.nodes.push_back(node(op, {from}, {to}, {}, "node " + std::to_string(i)));
  }
  const std::string text = refusal(model), all = refusal(model, {.all_refusals = true});
  CHECK(std::ranges::count(text, '\n') == 8);
  CHECK_THAT(text, ContainsSubstring("40 things are not supported") &&
                       ContainsSubstring("\n  20 Mish, first 'node 0' (opset 17): this operator") &&
                       ContainsSubstring("2 Odd11, first 'node 11'; 2 Odd13"));
  CHECK(std::ranges::count(all, '\n') == 41);
  for (int i = 0; i < 40; ++i) {
    CHECK_THAT(all, ContainsSubstring("'node " + std::to_string(i) + "' ("));
    if (i % 2 == 1) CHECK_THAT(text, ContainsSubstring("2 Odd" + std::to_string(i % 20) + ", first"));
  }
}

TEST_CASE("advice is what the reader can do, or there is none") {
  const auto says = [](std::vector<std::string> nodes, const Extents& x, const std::string& why) {
    const std::string text = refusal(of_nodes(std::move(nodes), x, {tensor("w", {4, 5}, std::vector<float>(20, 1))}));
    CHECK_THAT(text, ContainsSubstring(why) && !ContainsSubstring("before the export"));
  };
  const Attribute channels("axis", std::int64_t{1});
  says({node("Concat", {"x", "w"}, {"y"}, {channels})}, {4, 5}, "its input 'w' is a constant: only a computed one");
  says({node("MatMul", {"w", "x"}, {"y"})}, {1, 5, 7}, "its first factor is a constant");
  says({node("LRN", {"w"}, {"r"}), node("MatMul", {"x", "r"}, {"y"})}, {1, 4}, "let onnxruntime do it before");
  says({node("Flatten", {"x"}, {"a"}), node("Concat", {"a", "a"}, {"y"}, {channels})}, {2, 2, 3, 3},
       "axis 1 of 2x18 is not the channels of the 2x2x3x3 that it is kept as");
  says({node("Relu", {"x"}, {"r"}), node("Max", {"x", "r"}, {"y"})}, {1, 2}, "only a parameter or a constant is read");
  // What is advised for the product is read.
  const Attribute exchanged("perm", Extents{0, 2, 1});
  CHECK(output_of(read(of_nodes({node("Transpose", {"x"}, {"t"}, {exchanged}), node("MatMul", {"t", "w"}, {"p"}),
                                 node("Transpose", {"p"}, {"y"}, {exchanged})},
                                {1, 2, 3}, {tensor("w", {2, 1}, {1, 10})}))) == std::vector<double>{30, 41, 52});
}
