// What trains: what PyTorch trains, where the file says it, and by a rule where it does not.

#include <algorithm>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

using Names = std::vector<std::string>;

const std::vector<float> different = {1, 2, 3, 4}, alike = {2, 2, 2, 2};

/// A Constant node, as the old exporter writes numbers and tensors of a program.
std::string constant(const char* name, const Extents& dims, const std::vector<float>& values) {
  Attribute value("value", std::int64_t{0});
  value.bytes.clear();
  protozero::pbf_writer(value.bytes).add_message(5, tensor("", dims, values));
  return node("Constant", {}, {name}, {value});
}

/// A convolution with two parameters, and what follows it.
Model behind(std::vector<std::string> nodes, std::vector<std::string> initializers) {
  nodes.insert(nodes.begin(), node("Conv", {"x", "a.weight", "a.bias"}, {"c"}, {}, "a"));
  initializers.push_back(tensor("a.weight", {4, 1, 1, 1}, different));
  initializers.push_back(tensor("a.bias", {4}, different));
  Model model = of_nodes(std::move(nodes), {1, 1, 2, 2}, std::move(initializers));
  model.producer = "pytorch";
  return model;
}

/// As the new exporter writes it: which tensors are what, "w: BUFFER", and from which others were computed.
Model stated(Model model, const Names& kinds, const Names& computed = {}) {
  for (const std::string& its : kinds) {
    const std::size_t colon = its.find(':');
    model.signature += "p" + its + " target='" + its.substr(0, colon) + "'\n";
  }
  model.signature += "p_a: PARAMETER target='a.weight'\np_b: PARAMETER target='a.bias'\nx: USER_INPUT\n";
  for (std::size_t i = 0; i + 1 < computed.size(); i += 2) {
    std::string value, entry;
    protozero::pbf_writer(entry).add_string(1, "pkg.onnxscript.optimizer.folded_from");
    protozero::pbf_writer(entry).add_string(2, computed[i + 1]);
    protozero::pbf_writer(value).add_string(1, computed[i]);
    protozero::pbf_writer(value).add_message(4, entry);
    model.values.push_back(value);
  }
  return model;
}

/// The parameters of the graph besides the convolution's.
Names trained(const Model& model, const OnnxOptions& options = {}) {
  Names names;
  for (const Stored& its : read(model, options).graph.parameters())
    if (!its.name.starts_with("a.")) names.push_back(its.name);
  return names;
}

std::string filter(const char* w) { return node("Conv", {"c", w}, {"y"}, {{"group", std::int64_t{4}}}); }
std::string weights(const char* name) { return tensor(name, {4, 1, 1, 1}, different); }
std::string scale(const char* name) { return tensor(name, {4, 1, 1}, different); }

}  // namespace

TEST_CASE("what trains is what PyTorch trains, as both of its exporters write it") {
  struct Kind {
    const char* what;
    Model old_file, new_file;
    Names old_trained, new_trained;
  };
  const Names weight = {"y.weight"}, of_scale = {"y.scale"}, none;
  const std::string times = node("Mul", {"c", "g"}, {"y"}), plus = node("Add", {"c", "g"}, {"y"});
  const Model by_buffer = behind({filter("k")}, {weights("k")});
  const Model blur = behind({filter("k")}, {tensor("k", {4, 1, 1, 1}, alike)});
  const Model scaled = behind({times}, {scale("g")}), one = behind({times}, {tensor("g", {1}, {2})});
  const Model normed =
      behind({node("Mul", {"v", "g"}, {"w"}), filter("w")}, {weights("v"), tensor("g", {4, 1, 1, 1}, different)});
  const auto pooled = [](const std::string& product, const std::string& matrix) {
    return behind({node("GlobalAveragePool", {"c"}, {"p"}), node("Flatten", {"p"}, {"f"}), product}, {matrix});
  };
  const std::string gemm = node("Gemm", {"f", "m"}, {"y"});
  const auto batch_norm = [](const char* scale_name, const char* bias) {
    return node("BatchNormalization", {"c", scale_name, bias, "mean", "mean"}, {"y"});
  };
  const std::string mean = tensor("mean", {4}, different);
  const std::vector<Kind> kinds = {
      {"a parameter as a filter", by_buffer, stated(by_buffer, {"k: PARAMETER"}), weight, weight},
      {"a buffer as a filter", by_buffer, stated(by_buffer, {"k: BUFFER"}), weight,
       none},  // the old file cannot say it
      {"a buffer that is the same for every channel", blur, stated(blur, {"k: BUFFER"}), none, none},
      {"a tensor of the program as a filter",
       behind({constant("/Constant_output_0", {4, 1, 1, 1}, different), filter("/Constant_output_0")}, {}),
       stated(by_buffer, {"k: CONSTANT_TENSOR"}), none, none},
      {"a weight norm", normed,
       stated(behind({filter("mul")}, {weights("mul")}), {"v: PARAMETER", "g: PARAMETER"},
              {"mul", "['g', 'v', 'val_1']"}),
       weight, weight},
      {"a filter computed of buffers",
       behind({constant("/two", {}, {2}), node("Mul", {"/two", "/two"}, {"/four"}),
               node("Expand", {"/four", "shape"}, {"/w"}), filter("/w")},
              {integers("shape", {4, 1, 1, 1})}),
       stated(behind({filter("mul")}, {weights("mul")}), {"v: BUFFER"}, {"mul", "['v', 'val_1']"}), none, none},
      {"a parameter that it multiplies by", scaled, stated(scaled, {"g: PARAMETER"}), of_scale, of_scale},
      {"one parameter for all channels", one, stated(one, {"g: PARAMETER"}), of_scale, of_scale},
      {"a parameter that it adds", behind({plus, node("Relu", {"y"}, {"r"})}, {scale("g")}), {}, {}, {}},
      {"a buffer that it multiplies by", scaled, stated(scaled, {"g: BUFFER"}), of_scale, none},  // nor this
      {"a number",
       behind({constant("/Constant_output_0", {}, {2}), node("Mul", {"c", "/Constant_output_0"}, {"y"})}, {}),
       stated(behind({node("Mul", {"c", "val_8"}, {"y"})}, {tensor("val_8", {}, {2})}), {}), none, none},
      {"a parameter in other extents",
       behind({node("Reshape", {"g", "shape"}, {"/v"}), node("Mul", {"c", "/v"}, {"y"})},
              {tensor("g", {4}, different), integers("shape", {4, 1, 1})}),
       stated(behind({node("Mul", {"c", "view"}, {"y"})}, {scale("view")}), {"g: PARAMETER"},
              {"view", "['g', 'val_9']"}),
       of_scale, of_scale},
      {"a matrix that is a buffer", pooled(gemm, tensor("onnx::MatMul_9", {4, 1}, different)),
       stated(pooled(gemm, tensor("m", {4, 1}, different)), {"m: BUFFER"}), weight, none},
      {"a batch norm without parameters",
       behind({constant("/bn/one", {4}, alike), constant("/bn/zero", {4}, alike), batch_norm("/bn/one", "/bn/zero")},
              {mean}),
       stated(behind({batch_norm("val_1", "val_2")}, {tensor("val_1", {4}, alike), tensor("val_2", {4}, alike), mean}),
              {"mean: BUFFER"}),
       none, none},
  };
  for (const Kind& kind : kinds) {
    if (kind.new_file.nodes.empty()) continue;
    CAPTURE(kind.what);
    Model old_file = kind.old_file;
    if (std::string(kind.what).starts_with("a matrix"))
      old_file.nodes.back() = node("Gemm", {"f", "onnx::MatMul_9"}, {"y"});
    CHECK(trained(old_file) == kind.old_trained);
    CHECK(trained(kind.new_file) == kind.new_trained);
  }
}

TEST_CASE("a scale and a shift that train are one op, and other arithmetic stays beside them") {
  const Model affine =
      behind({node("Mul", {"g", "c"}, {"m"}), node("Add", {"m", "b"}, {"s"}), node("Mul", {"s", "/k"}, {"y"})},
             {tensor("g", {1}, {2}), tensor("b", {1}, {3}), tensor("/k", {}, {0.5F})});
  const OnnxModel model = read(affine);
  CHECK(model.graph.nodes().size() == 4);
  CHECK(model.graph.node("m").op == Op(ScaleShift{.by_channel = false, .learned = true}));
  CHECK(trained(affine) == Names{"m.scale", "m.shift"});
  CHECK(model.weights.at("m.shift").values == std::vector<double>{3});
  CHECK(output_of(model)[0] == 0.5 * (2 * 1 + 3));
  Model other = affine;
  other.producer = "another";  // whose initializers may be numbers
  CHECK(trained(other).empty());
  Model divided = affine;
  divided.nodes[1] = node("Div", {"c", "g"}, {"m"});
  CHECK(trained(divided) == Names{"s.shift"});
}

TEST_CASE("before the first parameters of a file that does not say it, numbers are those of the input") {
  Model model = of_nodes({node("Sub", {"x", "mean"}, {"s"}), node("Conv", {"s", "a.weight"}, {"y"}, {}, "a")},
                         {1, 1, 2, 2}, {tensor("mean", {1, 1, 1}, {2}), tensor("a.weight", {4, 1, 1, 1}, different)});
  model.producer = "pytorch";
  CHECK(trained(model).empty());
  CHECK(trained(model, {.trains = {{"mean", true}}}).empty());  // it is before them all the same
  model.signature = "p_m: PARAMETER target='mean'\n";
  CHECK(trained(model) == Names{"s.shift"});
}

TEST_CASE("the owner of a file says what trains, and notes say what was decided without the file") {
  const Model model = behind({node("Mul", {"c", "block.scale"}, {"m"}), node("Add", {"m", "block.mask"}, {"y"})},
                             {scale("block.scale"), scale("block.mask")});
  CHECK(trained(model) == Names{"m.scale", "m.shift"});
  CHECK(trained(model, {.trains = {{"*.mask", false}}}) == Names{"m.scale"});
  CHECK(trained(model, {.trains = {{"block.scale", false}, {"block.mask", false}}}).empty());
  CHECK_THROWS_AS(read(model, {.trains = {{"block", false}}}), UsageError);
  const auto notes_about = [](const OnnxModel& read, std::string_view what) {
    return std::count_if(read.notes.begin(), read.notes.end(),
                         [&](const std::string& note) { return note.find(what) != note.npos; });
  };
  CHECK(notes_about(read(model), "and 1 more train: the file does not say") == 1);
  CHECK(notes_about(read(stated(model, {"block.scale: PARAMETER", "block.mask: BUFFER"})), "the file does not say") ==
        0);
  CHECK(notes_about(read(behind({filter("k")}, {tensor("k", {4, 1, 1, 1}, alike)})), "does not train") == 1);
}
