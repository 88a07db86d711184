// LSTMs: sequences of rows and of columns, the steps that are computed, layers and directions.

#include <tuple>

#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// An LSTM of two hidden values on three features.
const std::string lstm_weights = R"(
  w[1,8,3] = -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02, -.01, 0, .01, .02, .03,
             -.03, -.02, -.01
  r[1,8,2] = -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02, -.01, 0, .01, .02, .03, -.03, -.02)";

}  // namespace

TEST_CASE("an LSTM treats the columns of an image of one row as the rows of an image of one column") {
  const auto model = [](const char* x, const char* axis) {
    return read("opset 12; filter[3,1,1,1] = .01, .02, -.01; x" + std::string(x) + lstm_weights + R"(
      c = Conv(x, filter) "conv" q = Squeeze<axes=[)" +
                axis + "]>(c) " + R"(
      s = Transpose<perm=[2,0,1]>(q) y = LSTM<hidden_size=2>(s, w, r) "lstm")");
  };
  const OnnxModel columns = model("[2,1,1,5]", "2"), rows = model("[2,1,5,1]", "3");
  CHECK(columns.output.extents == Extents{5, 1, 2, 2});
  CHECK(output_of(columns) == output_of(rows));
  const auto backend = make_backend("eigen");
  std::vector<Values> gradients;
  for (const OnnxModel* each : {&columns, &rows}) {
    Plan plan(each->graph, *backend, {.dtype = DType::f64, .seed = 5});
    load_weights(plan, each->weights);
    plan.forward();
    plan.backward();
    gradients.emplace_back(3);
    download(backend->device(), gradients.back(), plan.parameter_gradient("conv.weight"));
  }
  CHECK(gradients[0] == gradients[1]);
}

TEST_CASE("an LSTM gives only its last step if nothing reads the others") {
  const auto lstm = [](const std::string& direction, const std::string& nodes, int batch = 0) {
    return read("opset 12; x[2,4,3] zero[] = 0; two[] = 2; three[] = 3; last[] = -1; from = {-1}; to = {9}; one = {1}" +
                    lstm_weights + R"( stacked = {4, 2, 2}
                    s = Transpose<perm=[1,0,2]>(x) h, e = LSTM<direction=)" +
                    direction + ">(s, w, r) q = Squeeze<axes=[1]>(h) t = Transpose<perm=[1,0,2]>(q) " + nodes,
                {.batch = batch});
  };
  struct Case {
    std::string direction, nodes;
  };
  const std::string forward = "forward", reverse = "reverse", squeezed = " y = Squeeze<axes=[1]>(g)";
  for (const auto& [direction, nodes] :
       {Case{forward, "y = Gather<axis=1>(t, last)"}, Case{forward, "y = Gather<axis=1>(t, three)"},
        Case{forward, "y = Gather(q, last)"}, Case{forward, "g = Slice(t, from, to, one)" + squeezed},
        Case{forward, "g = Gather<axis=1>(t, from)" + squeezed}, Case{reverse, "y = Gather<axis=1>(t, zero)"},
        Case{forward, "u = Transpose<perm=[0,2,1,3]>(h) v = Reshape(u, stacked) y = Gather(v, last)"}}) {
    for (const int batch : {2, 3}) {
      CAPTURE(direction, nodes, batch);
      const OnnxModel model = lstm(direction, nodes, batch);
      CHECK(model.graph.nodes().size() == 2);
      CHECK(op_of(model) == Op(Recurrent{.hidden = 2, .steps = Steps::last, .reverse = direction == reverse}));
      const Values y = output_of(model), all = output_of(lstm(direction, "y = Identity(t)", batch));
      REQUIRE(y.size() == static_cast<std::size_t>(2 * batch));
      for (std::size_t i = 0; i < y.size(); ++i)
        CHECK(y[i] == Approx(all[i / 2 * 8 + (direction == reverse ? 0 : 6) + i % 2]).epsilon(1e-14));
      CHECK(y == output_of(lstm(direction, "y = Squeeze<axes=[0]>(e)", batch)));
    }
  }
}

TEST_CASE("another step of an LSTM is a row of all steps") {
  const auto lstm = [](const char* direction, const std::string& nodes) {
    return read("x[4,1,3] one[] = 1; last[] = -1; v[2,8,3] = -3..; u[2,8,2] = all 0.1;" + lstm_weights +
                " h, e = LSTM<direction=" + direction + nodes);
  };
  for (const auto& [direction, index, step] : {std::tuple{"forward>(x, w, r)", "one", 1},
                                               {"reverse>(x, w, r)", "last", 3},
                                               {"bidirectional>(x, v, u)", "last", 3}}) {
    CAPTURE(direction);
    const OnnxModel model = lstm(direction, std::string("y = Gather(h, ") + index + ")");
    CHECK(op_of(model) == Op(Slice{.axis = Axis::row, .first = step, .count = 1}));
    const Values y = output_of(model), all = output_of(lstm(direction, "y = Identity(h)"));
    CHECK(y == Values(all.begin() + step * std::ssize(y), all.begin() + (step + 1) * std::ssize(y)));
  }
}
