// What exporters write instead of an operator: LRN in its parts, a branch whose condition is known, a batch as a
// number.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// x / (1 + 0.5 * mean of the squares of 5 channels)^0.75, as PyTorch writes it, with other parts where they are given.
struct Parts {
  std::string pads = "0, 0, 2, 0, 0, 0, 0, 2, 0, 0", end = "y = Div(x, power) \"norm\"";
  std::string more{};  ///< between the mean and what is added
};

std::string lrn_of(const Parts& parts) {
  return "x[n,8,3,4] one = {1}; pads = {" + parts.pads + "} alpha[] = 0.5; k[] = 1; beta[] = 0.75;" + R"(
    squares = Mul(x, x) wide = Unsqueeze(squares, one) padded = Pad(wide, pads)
    mean = AveragePool<kernel_shape=[5,1,1]>(padded) narrow = Squeeze(mean, one) )" +
         parts.more + " scaled = Mul(" + (parts.more.empty() ? "narrow" : "again") +
         ", alpha) sum = Add(scaled, k) power = Pow(sum, beta) " + parts.end;
}

}  // namespace

TEST_CASE("an LRN that is written in its parts is one op") {
  const OnnxModel model = read(lrn_of({}));
  REQUIRE(model.graph.nodes().size() == 2);
  CHECK(model.graph.node("norm").op == Op(Lrn{.size = 5, .alpha = 0.5, .beta = 0.75, .k = 1}));
  CHECK(model.output.extents == Extents{1, 8, 3, 4});
}

TEST_CASE("the shape of a part of an LRN is known, and the parts are one op all the same") {
  CHECK(read(lrn_of({.more = "shape = Shape(narrow) again = Reshape(narrow, shape)"})).graph.nodes().size() == 2);
  CHECK_THROWS_AS(read(lrn_of({.more = "shape = Shape(padded) again = Reshape(narrow, shape)"})), Unsupported);
}

TEST_CASE("parts of an LRN that do not fit together are refused") {
  for (const Parts& parts :
       {Parts{.pads = "0, 0, 1, 0, 0, 0, 0, 3, 0, 0"}, Parts{.pads = "0, 0, 0, 2, 0, 0, 0, 0, 2, 0"},
        Parts{.end = "z[n,8,3,4] y = Div(z, power)"}, Parts{.end = "y = Relu(sum)"}})
    CHECK_THROWS_AS(read(lrn_of(parts)), Unsupported);
}

TEST_CASE("the branch of an If whose condition is known takes its place") {
  for (const std::string extent : {"1", "4"}) {
    const OnnxModel chosen = read("x[n," + extent + R"(] one = {1}
      shape = Shape(x) channels = Gather(shape, one) is_one = Equal(channels, one) r = Relu(x)
      chosen = If<then_branch={a = Sigmoid(r)}, else_branch={t = Identity(r) b = Tanh(t)}>(is_one) y = Relu(chosen))");
    REQUIRE(chosen.graph.nodes().size() == 4);
    CHECK(chosen.graph.nodes()[2].name == (extent == "1" ? "a" : "b"));
    CHECK(chosen.graph.node("y").inputs == std::vector<int>{2});
  }
}

TEST_CASE("a branch that reads what nothing makes, or makes what is made, is an invalid file") {
  const auto with = [](const std::string& inner) {
    return read("x[n,4] yes = {1}; r = Relu(x) y = If<then_branch={" + inner + " return a}>(yes)");
  };
  CHECK(with("a = Relu(r)").graph.nodes().size() == 3);
  CHECK_THROWS_AS(with("a = Relu(nothing)"), FileError);
  CHECK_THROWS_AS(with("r = Relu(x)"), FileError);
  CHECK_THROWS_AS(with("a = Relu(y)"), Unsupported);  // itself: not made when it is read
}

TEST_CASE("a batch that is a number in the shape of a Reshape is replaced with that of the inputs") {
  for (const std::string in_file : {"1", "2", "3"}) {
    for (const std::string& shape : {in_file + ", -1", in_file + ", 12", std::string("-1, 12"), std::string("0, -1")}) {
      for (const int batch : {1, 2, 6}) {
        CAPTURE(in_file, shape, batch);
        const OnnxModel model =
            read("x[" + in_file + ",3,2,2] shape = {" + shape + "} flat = Reshape(x, shape) y = Relu(flat)",
                 {.batch = batch});
        CHECK(model.output.extents == Extents{batch, 12});
      }
    }
  }
}

TEST_CASE("a batch that is a number is replaced where it is not the first axis") {
  const std::string model = R"(x[2,5,8] shape = {5, 2, 4, 2}
    t = Transpose<perm=[1,0,2]>(x) split = Reshape(t, shape) y = Relu(split))";
  CHECK(read(model, {.batch = 3}).output.extents == Extents{5, 3, 4, 2});
  CHECK(read(model).output.extents == Extents{5, 2, 4, 2});
}

TEST_CASE("a shape that is computed from the running network has the batch already") {
  const std::string model = R"(x[2,3,2,2] zero = {0}; rest = {-1}
    all = Shape(x) n = Gather(all, zero) shape = Concat<axis=0>(n, rest) flat = Reshape(x, shape) y = Relu(flat))";
  CHECK(read(model, {.batch = 4}).output.extents == Extents{4, 12});
}

TEST_CASE("a file without batch norms, but with biased convolutions, says so") {
  const auto notes = [](const std::string& nodes) {
    return read("x[n,2,3,3] w[2,2,1,1] = 1..; b[2] = 0, 1;" + nodes).notes;
  };
  const std::string first = "c = Conv(x, w, b) ", last = " y = Conv(r, w, b) \"last\"";
  REQUIRE(notes(first + "r = Relu(c)" + last).size() == 1);
  CHECK(notes(first + "r = Relu(c)" + last)[0].starts_with("no batch norm, but 2 convolutions with bias"));
  CHECK(notes(first + "r = BatchNormalization(c, b, b, b, b)" + last).empty());
  CHECK(notes("y = Conv(x, w)").empty());
}
