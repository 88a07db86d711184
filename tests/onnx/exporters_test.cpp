// What exporters write, and options change: the batch as a number, nodes that are for training.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

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
  // A CRNN makes rows of all steps of all images, and steps again.
  for (const int steps : {5, 8})  // 8 has the batch as a factor
    for (const int in_file : {1, 2})
      for (const int batch : {1, 2, 3, 10}) {
        CAPTURE(steps, in_file, batch);
        const std::string n = std::to_string(in_file), t = std::to_string(steps), all = std::to_string(steps * in_file);
        const OnnxModel rows =
            read("x[" + t + "," + n + ",3] w[1,8,3] = all 0; r[1,8,2] = all 0; m[2,4] = all 0; one = {1}; flat = {" +
                     all + ", 2}; steps = {" + t + ", " + n + ", 4} h = LSTM<hidden_size=2>(x, w, r) " +
                     "s = Squeeze(h, one) f = Reshape(s, flat) g = MatMul(f, m) y = Reshape(g, steps)",
                 {.batch = batch});
        CHECK(rows.output.extents == Extents{steps, batch, 4});
      }
}

TEST_CASE("a batch that is a number in the sizes of a Resize is replaced, too") {
  const std::string model = R"(x[2,1,2,2] sizes = {2, 1, 4, 6}
    y = Resize<coordinate_transformation_mode=asymmetric, nearest_mode=floor>(x, , , sizes))";
  for (const int batch : {1, 2, 3, 4}) CHECK(read(model, {.batch = batch}).output.extents == Extents{batch, 1, 4, 6});
  CHECK(read(model).output.extents == Extents{2, 1, 4, 6});
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

TEST_CASE("everything in order under other extents is a view, also for another batch") {
  const Model model = R"(
    x[2,3,1,1] flat = {-1}; m[3,1] = 1, 10, 100; all[2,3] = {0, 1, 2, 3, 4, 5}
    f = Reshape(x, flat) g = Gather(f, all) y = Gemm(g, m))";
  CHECK(output_of(read(model)) == Values{210, 543});
  CHECK(output_of(read(model, {.batch = 3})) == Values{210, 543, 876});
}

TEST_CASE("a model that was exported for training is read as one where the options say so") {
  const std::string given = "x[2,1,1,2] one[1] = 1; zero[1] = 0; quarter[] = 0.25; yes = {1}; nothing[] = 0;";
  const std::string norm = "n, mean, var = BatchNormalization<training_mode=1>(x, one, zero, zero, one)";
  const std::string drop = "y, mask = Dropout(n, quarter, yes)", model = given + norm + drop;
  CHECK_THROWS_WITH(read(model), ContainsSubstring("'n'") && ContainsSubstring("OnnxOptions::training"));
  CHECK_THROWS_WITH(read(given + "n = Relu(x) " + drop),
                    ContainsSubstring("'y'") && ContainsSubstring("OnnxOptions::training"));
  const OnnxOptions options{.training = true};
  const OnnxModel trained = read(model, options);
  CHECK(trained.graph.node("n").op == Op(BatchNorm{}));
  CHECK(trained.graph.node("y").op == Op(Dropout{.rate = 0.25}));
  CHECK_THROWS_WITH(read(model + " return mask", options), ContainsSubstring("mask"));
  CHECK_THROWS_WITH(read(model + " return mean", options), ContainsSubstring("'mean' is used"));
  // drops nothing, in training too
  CHECK(read(given + norm + "y, mask = Dropout(n, nothing, yes)", options).graph.node("y").op ==
        Op(Dropout{.rate = 0}));
}
