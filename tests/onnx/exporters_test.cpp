// What exporters write instead of an operator: LRN in its parts, a branch whose condition is known, a batch as a
// number.

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// x / (1 + 0.5 * mean of the squares of 5 channels)^0.75, as PyTorch writes it.
Model lrn_in_parts() {
  return {.nodes = {node("Mul", {"x", "x"}, {"squares"}), node("Unsqueeze", {"squares", "one"}, {"wide"}),
                    node("Pad", {"wide", "pads"}, {"padded"}),
                    node("AveragePool", {"padded"}, {"mean"}, {{"kernel_shape", Extents{5, 1, 1}}}),
                    node("Squeeze", {"mean", "one"}, {"narrow"}), node("Mul", {"narrow", "alpha"}, {"scaled"}),
                    node("Add", {"scaled", "k"}, {"sum"}), node("Pow", {"sum", "beta"}, {"power"}),
                    node("Div", {"x", "power"}, {"y"}, {}, "norm")},
          .initializers = {integers("one", {1}), integers("pads", {0, 0, 2, 0, 0, 0, 0, 2, 0, 0}),
                           tensor("alpha", {}, {0.5F}), tensor("k", {}, {1}), tensor("beta", {}, {0.75F})},
          .inputs = {value("x", {0, 8, 3, 4})},
          .outputs = {value("y", {0, 8, 3, 4})}};
}

}  // namespace

TEST_CASE("an LRN that is written in its parts is one op") {
  const OnnxModel model = read(lrn_in_parts());
  REQUIRE(model.graph.nodes().size() == 2);
  CHECK(model.graph.node("norm").op == Op(Lrn{.size = 5, .alpha = 0.5, .beta = 0.75, .k = 1}));
  CHECK(model.output.extents == Extents{1, 8, 3, 4});
}

TEST_CASE("the shape of a part of an LRN is known, and the parts are one op all the same") {
  Model model = lrn_in_parts();
  model.nodes.insert(model.nodes.begin() + 5, node("Shape", {"narrow"}, {"shape"}));
  model.nodes.insert(model.nodes.begin() + 6, node("Reshape", {"narrow", "shape"}, {"again"}));
  model.nodes[7] = node("Mul", {"again", "alpha"}, {"scaled"});
  CHECK(read(model).graph.nodes().size() == 2);
  model.nodes[5] = node("Shape", {"padded"}, {"shape"});
  CHECK_THROWS_AS(read(model), Unsupported);
}

TEST_CASE("parts of an LRN that do not fit together are refused") {
  Model uneven = lrn_in_parts();
  uneven.initializers[1] = integers("pads", {0, 0, 1, 0, 0, 0, 0, 3, 0, 0});
  CHECK_THROWS_AS(read(uneven), Unsupported);
  Model rows = lrn_in_parts();
  rows.initializers[1] = integers("pads", {0, 0, 0, 2, 0, 0, 0, 0, 2, 0});
  CHECK_THROWS_AS(read(rows), Unsupported);
  Model other = lrn_in_parts();
  other.nodes[8] = node("Div", {"z", "power"}, {"y"}, {}, "norm");
  other.inputs.push_back(value("z", {0, 8, 3, 4}));
  CHECK_THROWS_AS(read(other), Unsupported);
  Model early = lrn_in_parts();
  early.nodes[8] = node("Relu", {"sum"}, {"y"});
  CHECK_THROWS_AS(read(early), Unsupported);
}

TEST_CASE("the branch of an If whose condition is known takes its place") {
  for (const std::int64_t extent : {1, 4}) {
    Model model{
        .nodes = {node("Shape", {"x"}, {"shape"}), node("Gather", {"shape", "one"}, {"channels"}),
                  node("Equal", {"channels", "one"}, {"is_one"}), node("Relu", {"x"}, {"r"}),
                  node("If", {"is_one"}, {"chosen"},
                       {branch("then_branch", {node("Sigmoid", {"r"}, {"a"})}, "a"),
                        branch("else_branch", {node("Identity", {"r"}, {"t"}), node("Tanh", {"t"}, {"b"})}, "b")}),
                  node("Relu", {"chosen"}, {"y"})},
        .initializers = {integers("one", {1})},
        .inputs = {value("x", {0, extent})},
        .outputs = {value("y", {0, extent})}};
    const OnnxModel chosen = read(model);
    REQUIRE(chosen.graph.nodes().size() == 4);
    CHECK(chosen.graph.nodes()[2].name == (extent == 1 ? "a" : "b"));
    CHECK(chosen.graph.node("y").inputs == std::vector<int>{2});
  }
}

TEST_CASE("a branch that reads what nothing makes, or makes what is made, is an invalid file") {
  const auto with = [](const std::string& inner) {
    return Model{
        .nodes = {node("Relu", {"x"}, {"r"}), node("If", {"yes"}, {"y"}, {branch("then_branch", {inner}, "a")})},
        .initializers = {integers("yes", {1})},
        .inputs = {value("x", {0, 4})},
        .outputs = {value("y", {0, 4})}};
  };
  CHECK(read(with(node("Relu", {"r"}, {"a"}))).graph.nodes().size() == 3);
  CHECK_THROWS_AS(read(with(node("Relu", {"nothing"}, {"a"}))), FileError);
  CHECK_THROWS_AS(read(with(node("Relu", {"x"}, {"r"}))), FileError);
  CHECK_THROWS_AS(read(with(node("Relu", {"y"}, {"a"}))), Unsupported);  // itself: not made when it is read
}

TEST_CASE("a batch that is a number in the shape of a Reshape is replaced with that of the inputs") {
  for (const std::int64_t in_file : {1, 2, 3}) {
    for (const Extents& shape : {Extents{in_file, -1}, Extents{in_file, 12}, Extents{-1, 12}, Extents{0, -1}}) {
      for (const int batch : {1, 2, 6}) {
        CAPTURE(in_file, shape, batch);
        const Model model{.nodes = {node("Reshape", {"x", "shape"}, {"flat"}), node("Relu", {"flat"}, {"y"})},
                          .initializers = {integers("shape", shape)},
                          .inputs = {value("x", {in_file, 3, 2, 2})},
                          .outputs = {value("y", {in_file, 12})}};
        CHECK(read(model, {.batch = batch}).output.extents == Extents{batch, 12});
      }
    }
  }
}

TEST_CASE("a batch that is a number is replaced where it is not the first axis") {
  const Model model{.nodes = {node("Transpose", {"x"}, {"t"}, {{"perm", Extents{1, 0, 2}}}),
                              node("Reshape", {"t", "shape"}, {"split"}), node("Relu", {"split"}, {"y"})},
                    .initializers = {integers("shape", {5, 2, 4, 2})},
                    .inputs = {value("x", {2, 5, 8})},
                    .outputs = {value("y", {5, 2, 4, 2})}};
  CHECK(read(model, {.batch = 3}).output.extents == Extents{5, 3, 4, 2});
  CHECK(read(model).output.extents == Extents{5, 2, 4, 2});
}

TEST_CASE("a shape that is computed from the running network has the batch already") {
  const Model model{.nodes = {node("Shape", {"x"}, {"all"}), node("Gather", {"all", "zero"}, {"n"}),
                              node("Concat", {"n", "rest"}, {"shape"}, {{"axis", std::int64_t{0}}}),
                              node("Reshape", {"x", "shape"}, {"flat"}), node("Relu", {"flat"}, {"y"})},
                    .initializers = {integers("zero", {0}), integers("rest", {-1})},
                    .inputs = {value("x", {2, 3, 2, 2})},
                    .outputs = {value("y", {2, 12})}};
  CHECK(read(model, {.batch = 4}).output.extents == Extents{4, 12});
}

TEST_CASE("a file without batch norms, but with biased convolutions, says so") {
  Model model{.nodes = {node("Conv", {"x", "w", "b"}, {"c"}), node("Relu", {"c"}, {"r"}),
                        node("Conv", {"r", "w", "b"}, {"y"}, {}, "last")},
              .initializers = {tensor("w", {2, 2, 1, 1}, {1, 2, 3, 4}), tensor("b", {2}, {0, 1})},
              .inputs = {value("x", {0, 2, 3, 3})},
              .outputs = {value("y", {0, 2, 3, 3})}};
  const std::vector<std::string> notes = read(model).notes;
  REQUIRE(notes.size() == 1);
  CHECK(notes[0].starts_with("no batch norm, but 2 convolutions with bias"));
  model.nodes[1] = node("BatchNormalization", {"c", "b", "b", "b", "b"}, {"r"});
  CHECK(read(model).notes.empty());
  model.nodes = {node("Conv", {"x", "w"}, {"y"})};
  CHECK(read(model).notes.empty());
}
