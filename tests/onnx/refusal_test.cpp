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

}  // namespace

TEST_CASE("nodes behind an unread node are judged by the extents that the file states") {
  // An FPN's sum: the second operand has twice the rows and columns of what it is made of.
  const std::string model = R"(x[2,1,4,4] w[1,1,1,1] = 1
    p = MaxPool<kernel_shape=[2,2], strides=[2,2]>(x) u = GridSample(p) s = Add(x, u) y = Conv(s, w))";
  const std::string stated = refusal(model + "~u[2,1,4,4]");
  CHECK_THAT(stated, ContainsSubstring("1 thing is not supported:\n  'u' (GridSample, opset 17): this operator"));
  CHECK_THAT(stated, !ContainsSubstring("Add") && !ContainsSubstring("not judged"));
  // Also where another batch is wanted than the file's.
  const std::string of_three = refusal(model + "~u[2,1,4,4]", {.batch = 3});
  CHECK_THAT(of_three,
             ContainsSubstring("'u' (GridSample") && !ContainsSubstring("Add") && !ContainsSubstring("not judged"));
  const std::string unknown = refusal(model);
  CHECK_THAT(unknown, ContainsSubstring("1 thing is not supported"));
  CHECK_THAT(unknown,
             ContainsSubstring("not judged, because they follow those above: 1 Add, first 's'; 1 Conv, first 'y'"));
  CHECK_THAT(refusal(model + "~u[2,1,2,2]"), ContainsSubstring("it joins 2x1x4x4 and 2x1x2x2"));
}

TEST_CASE("an open extent that the file states is that of the input by its name") {
  const std::string model = "x[n,2,steps] u = GridSample(x) y = Add(x, u) ~u[n,2,";
  CHECK_THAT(refusal(model + "steps]", {.extents = {{"steps", 5}}}), !ContainsSubstring("Add"));
  CHECK_THAT(refusal(model + "nobody's]", {.extents = {{"steps", 5}}}),
             ContainsSubstring("not judged, because they follow those above: 1 Add"));
}

TEST_CASE("functions of single elements keep the extents of their operand") {
  const std::string text = refusal(R"(x[1,2,4,4] w[1,2,1,1] = 1, 2
    e = Swish(x) c = Conv(e, w) p = MaxPool<kernel_shape=[2,2], dilations=[2,2]>(c) y = Add(c, p))");
  CHECK_THAT(text,
             ContainsSubstring("'e' (Swish, opset 17)") && ContainsSubstring("'p' (MaxPool, opset 17): dilations"));
  CHECK_THAT(text, ContainsSubstring("follow those above: 1 Add, first 'y'") && !ContainsSubstring("Conv"));
}

TEST_CASE("what depends on the order in which an unknown value would be kept is not judged, but named") {
  const std::string text = refusal(R"(x[1,2,3,4] w[1,2,1,1] = 1, 2; m[4,4] = all 1; ~a[1,2,3,4] ~c[1,1,3,4]
    a = Attention(x) s = MatMul(a, m) f = Flatten(s) c = Conv(a, w) y = Sum(f, c))");
  CHECK_THAT(text,
             ContainsSubstring("it joins 1x24 and 1x1x3x4") && ContainsSubstring("follow those above: 1 Conv, first"));
}

TEST_CASE("behind a constant that is not computed a product of unknown extents is not judged") {
  const std::string text = refusal(R"(x[1,4] five = {5}; three = {3}
    two = BitShift(five, three) r = Reshape(x, two) m = MatMul(r, r) y = Softmax(m))");
  CHECK_THAT(text, ContainsSubstring("'two' (BitShift, opset 17)") &&
                       ContainsSubstring("follow those above: 1 Reshape, first 'r'; 1 MatMul, first 'm'; 1 Softmax"));
}

TEST_CASE("nodes of one operator are told by their number and the first one's name, in ten lines at most") {
  std::string model = "v0[1,4]";
  for (int i = 0; i < 40; ++i) {
    const std::string from = "v" + std::to_string(i), to = " v" + std::to_string(i + 1);
    model += to + " = " + (i % 2 == 0 ? "Swish" : "Odd" + std::to_string(i % 20)) + "(" + from + ") \"node " +
             std::to_string(i) + "\"";
  }
  const std::string text = refusal(model), all = refusal(model, {.all_refusals = true});
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

TEST_CASE("advice is what the reader can do, or there is none") {
  const auto says = [](const std::string& model, const std::string& why) {
    CHECK_THAT(refusal("w[4,5] = all 1; " + model), ContainsSubstring(why) && !ContainsSubstring("before the export"));
  };
  says("x[2,5] y = Concat<axis=1>(x, w)", "its constant of 4x5 has not the images of 2x5");
  says("x[1,5,7] y = MatMul(w, x)", "its first factor is a constant");
  says("x[1,4] r = LRN(w) y = MatMul(x, r)", "let onnxruntime fold it before");
  says("x[1,2] r = Relu(x) y = Pow(x, r)", "only a parameter or a constant is read");
  // What is advised for the product is read.
  CHECK(output_of(read(R"(x[1,2,3] w[2,1] = 1, 10
    t = Transpose<perm=[0,2,1]>(x) p = MatMul(t, w) y = Transpose<perm=[0,2,1]>(p))")) == Values{30, 41, 52});
}
