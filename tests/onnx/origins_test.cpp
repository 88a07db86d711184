// What trains: what PyTorch trains, where the file says it, and by a rule where it does not.

#include <algorithm>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// A convolution with two parameters, and what follows it.
Model behind(const std::string& text) {
  Model model = "x[1,1,2,2] a.weight[4,1,1,1] = 1..; a.bias[4] = 1..; c = Conv(x, a.weight, a.bias) \"a\" " + text;
  model.producer = "pytorch";
  return model;
}

/// As the new exporter writes it: which tensors are what, "w: BUFFER", and from which others one was computed.
Model stated(Model model, const Names& kinds, const std::string& value = {}, const std::string& computed_of = {}) {
  for (const std::string& its : kinds)
    model.signature += "p" + its + " target='" + its.substr(0, its.find(':')) + "'\n";
  model.signature += "p_a: PARAMETER target='a.weight'\np_b: PARAMETER target='a.bias'\nx: USER_INPUT\n";
  if (value.empty()) return model;
  Writer(model.values.emplace_back()).add_string(1, value);
  Writer(model.values.back()).add_message(4, entry("pkg.onnxscript.optimizer.folded_from", computed_of));
  return model;
}

/// The parameters of the graph besides the convolution's.
Names trained(const Model& model, const OnnxOptions& options = {}) {
  Names names;
  for (const Stored& its : read(model, options).graph.parameters())
    if (!its.name.starts_with("a.")) names.push_back(its.name);
  return names;
}

const std::string g = " g[4,1,1] = 1..", filter = "[4,1,1,1] = 1.. y = Conv<group=4>(c, ";

}  // namespace

TEST_CASE("the same parameters train as in PyTorch, from files of both its exporters") {
  struct Kind {
    const char* what;
    std::string old_file, new_file;
    Names states;  ///< what the new file says of tensors
    Names old_trained, new_trained;
    std::string value{}, computed_of{};  ///< by the new file
  };
  const Names weight = {"y.weight"}, scale = {"y.scale"}, none;
  const std::string by_buffer = "k" + filter + "k)", of_mul = "mul" + filter + "mul)", scaled = "y = Mul(c, g)" + g;
  const std::string blur = "k[4,1,1,1] = all 2; y = Conv<group=4>(c, k)", one = "g[1] = 2; y = Mul(c, g)";
  const std::string pooled = "p = GlobalAveragePool(c) f = Flatten(p) ";
  const std::vector<Kind> kinds = {
      {"a parameter as a filter", by_buffer, by_buffer, {"k: PARAMETER"}, weight, weight},
      {"a buffer as a filter", by_buffer, by_buffer, {"k: BUFFER"}, weight, none},  // the old file cannot say it
      {"a buffer that is the same for every channel", blur, blur, {"k: BUFFER"}, none, none},
      {"a tensor of the program as a filter",
       "/C_0 = Constant<value={t[4,1,1,1] = 1..}>() y = Conv<group=4>(c, /C_0)",
       by_buffer,
       {"k: CONSTANT_TENSOR"},
       none,
       none},
      {"a weight norm",
       "v[4,1,1,1] = 1.. g[4,1,1,1] = 1.. w = Mul(v, g) y = Conv<group=4>(c, w)",
       of_mul,
       {"v: PARAMETER", "g: PARAMETER"},
       weight,
       weight,
       "mul",
       "['g', 'v', 'val_1']"},
      {"a filter computed of buffers",
       "shape = {4, 1, 1, 1} /two = Constant<value={t[] = 2}>() /four = Mul(/two, /two) /w = Expand(/four, shape) "
       "y = Conv<group=4>(c, /w)",
       of_mul,
       {"v: BUFFER"},
       none,
       none,
       "mul",
       "['v', 'val_1']"},
      {"a parameter that it multiplies by", scaled, scaled, {"g: PARAMETER"}, scale, scale},
      {"one parameter for all channels", one, one, {"g: PARAMETER"}, scale, scale},
      {"a buffer that it multiplies by", scaled, scaled, {"g: BUFFER"}, scale, none},  // nor this
      {"a number",
       "/C_0 = Constant<value={t[] = 2}>() y = Mul(c, /C_0)",
       "val_8[] = 2; y = Mul(c, val_8)",
       {},
       none,
       none},
      {"a parameter in other extents",
       "g[4] = 1.. shape = {4, 1, 1} /v = Reshape(g, shape) y = Mul(c, /v)",
       "view[4,1,1] = 1.. y = Mul(c, view)",
       {"g: PARAMETER"},
       scale,
       scale,
       "view",
       "['g', 'val_9']"},
      {"a matrix that is a buffer",
       pooled + "onnx::MatMul_9[4,1] = 1.. y = Gemm(f, onnx::MatMul_9)",
       pooled + "m[4,1] = 1.. y = Gemm(f, m)",
       {"m: BUFFER"},
       weight,
       none},
      {"a batch norm without parameters",
       "mean[4] = 1.. /one = Constant<value={t[4] = all 2}>() /zero = Constant<value={t[4] = all 2}>() "
       "y = BatchNormalization(c, /one, /zero, mean, mean)",
       "mean[4] = 1.. val_1[4] = all 2; val_2[4] = all 2; y = BatchNormalization(c, val_1, val_2, mean, mean)",
       {"mean: BUFFER"},
       none,
       none},
  };
  for (const Kind& kind : kinds) {
    CAPTURE(kind.what);
    CHECK(trained(behind(kind.old_file)) == kind.old_trained);
    CHECK(trained(stated(behind(kind.new_file), kind.states, kind.value, kind.computed_of)) == kind.new_trained);
  }
}

TEST_CASE("a transpose that the exporter folded is the parameter in another order, which is said") {
  const Model model = behind(
      "p = GlobalAveragePool(c) f = Flatten(p) k[2,4] = 1..; t[4,2] = 1, 5, 2, 6, 3, 7, 4, 8;"
      "h = MatMul(f, t) \"in\" y = MatMul(h, k) \"out\"");
  const std::vector<std::string> notes = read(stated(model, {"k: PARAMETER"}, "t", "['k']")).notes;
  CHECK(std::ranges::count(notes,
                           "in.weight and out.weight are the parameter \"k\" in different orders or scales: here "
                           "they train as two") == 1);
}

TEST_CASE("a file that computes an initializer of its input is read all the same") {
  const Model model = stated("x[1,1,2,2] w[1,1,1,1] = 1; y = Conv(x, w)", {"x: PARAMETER"}, "w", "['x']");
  CHECK(output_of(read(model)).size() == 4);
}

TEST_CASE("a scale and a shift that train are one op, and other arithmetic stays beside them") {
  const std::string end = " s = Add(m, b) y = Mul(s, /k) g[1] = 2; b[1] = 3; /k[] = 0.5";
  const Model affine = behind("m = Mul(g, c)" + end);
  const OnnxModel model = read(affine);
  CHECK(model.graph.nodes().size() == 4);
  CHECK(model.graph.node("m").op == Op(ScaleShift{.by_channel = false, .learned = true}));
  CHECK(trained(affine) == Names{"m.scale", "m.shift"});
  CHECK(model.weights.at("m.shift").values == Values{3});
  CHECK(output_of(model)[0] == 0.5 * (2 * 1 + 3));
  Model other = affine;
  other.producer = "another";  // whose initializers may be numbers
  CHECK(trained(other).empty());
  CHECK(trained(behind("m = Div(c, g)" + end)) == Names{"s.shift"});
}

TEST_CASE("before the first parameters of a file that does not say it, numbers are those of the input") {
  Model model = "x[1,1,2,2] mean[1,1,1] = 2; a.weight[4,1,1,1] = 1.. s = Sub(x, mean) y = Conv(s, a.weight) \"a\"";
  model.producer = "pytorch";
  CHECK(trained(model).empty());
  CHECK(trained(model, {.trains = {{"mean", true}}}).empty());  // it is before them all the same
  model.signature = "p_m: PARAMETER target='mean'\n";
  CHECK(trained(model) == Names{"s.shift"});
}

TEST_CASE("the owner of a file says what trains, and notes say what was decided without the file") {
  const Model model =
      behind("block.scale[4,1,1] = 1.. block.mask[4,1,1] = 1.. m = Mul(c, block.scale) y = Add(m, block.mask)");
  CHECK(trained(model) == Names{"m.scale", "m.shift"});
  CHECK(trained(model, {.trains = {{"*.mask", false}}}) == Names{"m.scale"});
  CHECK(trained(model, {.trains = {{"block.scale", false}, {"block.mask", false}}}).empty());
  CHECK_THROWS_AS(read(model, {.trains = {{"block", false}}}), UsageError);
  const auto notes_about = [](const OnnxModel& read, std::string_view what) {
    return std::count_if(read.notes.begin(), read.notes.end(),
                         [&](const std::string& note) { return note.find(what) != note.npos; });
  };
  CHECK(
      notes_about(
          read(model),
          "trains without being stated a parameter (OnnxOptions::trains can say otherwise): 'block.mask' and 1 more") ==
      1);
  CHECK(notes_about(read(stated(model, {"block.scale: PARAMETER", "block.mask: BUFFER"})), "without being stated") ==
        0);
  CHECK(notes_about(read(behind("k[4,1,1,1] = all 2; y = Conv<group=4>(c, k)")), "does not train") == 1);
}
