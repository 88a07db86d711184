// Every network against the tables of its layers, which were made by running its PyTorch twin (docs/networks.md).

#include <charconv>
#include <iterator>

#include "lamina/nets.h"
#include "tests/support/catch.h"
#include "tests/support/csv.h"
#include "tests/support/data.h"

using namespace lamina;
using test::CsvRow;

namespace {

// Networks that are in the tables only to tell variants apart. The zoo has no builder for them.
const std::set<std::string> neighbours{"googlenet_caffe", "resnet50_v1"};

constexpr int batch = 2;

std::string text(Size size) { return std::to_string(size.h) + 'x' + std::to_string(size.w); }

/// A number in six digits, as the tables have it.
std::string text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr};
}

/// Extents of one image's value. A map of one pixel is a vector.
std::string extents(const Shape& shape) {
  if (shape.h == 1 && shape.w == 1) return std::to_string(shape.c);
  return std::to_string(shape.c) + 'x' + text({shape.h, shape.w});
}

/// The columns of the table from type to extra.
struct Described {
  std::string type, kernel{}, stride{}, pad{}, groups{}, ceil{}, bias{}, extra{};
};

struct Describe {
  const Shape& x;

  Described operator()(const Input&) const { return {.type = "Input"}; }
  Described operator()(const Conv& op) const {
    REQUIRE(op.dilation == 1);
    return {.type = "Conv2d",
            .kernel = text(op.kernel),
            .stride = text(op.stride),
            .pad = text(op.pad),
            .groups = std::to_string(op.groups),
            .bias = op.bias ? "yes" : "no"};
  }
  Described operator()(const ConvTranspose& op) const {
    return {.type = "ConvTranspose2d",
            .kernel = text(op.kernel),
            .stride = text(op.stride),
            .pad = text(op.pad),
            .groups = std::to_string(op.groups),
            .bias = op.bias ? "yes" : "no",
            .extra = "output_padding=" + text(op.output_pad)};
  }
  template <class Pool>
  Described pool(const char* type, const Pool& op) const {
    return {.type = type,
            .kernel = text(op.window),
            .stride = text(op.stride),
            .pad = text(op.pad),
            .ceil = op.rounding == Rounding::up ? "yes" : "no"};
  }
  Described operator()(const MaxPool& op) const { return pool("MaxPool2d", op); }
  Described operator()(const AveragePool& op) const { return pool("AvgPool2d", op); }
  Described operator()(const GlobalAveragePool&) const {
    return pool("AvgPool2d", AveragePool{.window = {x.h, x.w}, .stride = 1});
  }
  Described operator()(const BatchNorm& op) const {
    return {.type = "BatchNorm2d", .extra = "eps=" + text(op.epsilon) + " momentum=" + text(op.momentum)};
  }
  Described operator()(const GroupNorm& op) const {
    return {.type = "GroupNorm", .groups = std::to_string(op.groups), .extra = "eps=" + text(op.epsilon)};
  }
  Described operator()(const LayerNorm& op) const { return {.type = "LayerNorm", .extra = "eps=" + text(op.epsilon)}; }
  Described operator()(const Lrn& op) const {
    return {.type = "LocalResponseNorm",
            .extra = "n=" + std::to_string(op.size) + " alpha=" + text(op.alpha) + " beta=" + text(op.beta) +
                     " k=" + text(op.k)};
  }
  Described operator()(const Relu&) const { return {.type = "ReLU"}; }
  Described operator()(const FullyConnected& op) const { return {.type = "Linear", .bias = op.bias ? "yes" : "no"}; }
  Described operator()(const Dropout& op) const { return {.type = "Dropout", .extra = "p=" + text(op.rate)}; }
  Described operator()(const Softmax&) const { return {.type = "Softmax"}; }
  Described operator()(const Pointwise& op) const {
    switch (op.function) {
      case Function::clip: return {.type = "Hardtanh", .extra = "min=" + text(op.a) + " max=" + text(op.b)};
      case Function::leaky_relu: return {.type = "LeakyReLU", .extra = "slope=" + text(op.a)};
      case Function::gelu: return {.type = "GELU"};
      case Function::sigmoid: return {.type = "Sigmoid"};
      case Function::silu: return {.type = "SiLU"};
      case Function::tanh: return {.type = "Tanh"};
      default: return {.type = "other"};
    }
  }
  Described operator()(const Binary&) const { return {.type = "Mul"}; }
  Described operator()(const ScaleShift& op) const { return {.type = op.learned ? "LayerScale" : "Affine"}; }
  Described operator()(const PRelu&) const { return {.type = "PReLU"}; }
  Described operator()(const Pad&) const { return {.type = "ConstantPad2d"}; }
  Described operator()(const Resize& op) const { return {.type = "Upsample", .extra = "size=" + text(op.to)}; }
  Described operator()(const Reorder&) const { return {.type = "Reorder"}; }
  Described operator()(const Reduce&) const { return {.type = "Reduce"}; }
  Described operator()(const SoftmaxCrossEntropy&) const { return {.type = "CrossEntropyLoss"}; }
  Described operator()(const SigmoidCrossEntropy&) const { return {.type = "BCEWithLogitsLoss"}; }
  Described operator()(const Embedding&) const { return {.type = "Embedding"}; }
  Described operator()(const Recurrent& op) const { return {.type = op.cell == Cell::gru ? "GRU" : "LSTM"}; }
  Described operator()(const Add&) const { return {.type = "Add"}; }
  Described operator()(const Concat&) const { return {.type = "Concat"}; }
  Described operator()(const Slice& op) const {
    return {.type = "Narrow", .extra = "start=" + std::to_string(op.first) + " length=" + std::to_string(op.count)};
  }
};

std::string joined(const std::string& name, const Described& d, const std::string& out, const std::string& params,
                   const std::string& macs) {
  std::string line = name;
  for (const std::string& field :
       {d.type, d.kernel, d.stride, d.pad, d.groups, d.ceil, d.bias, d.extra, out, params, macs}) {
    line += ',' + field;
  }
  return line;
}

/// One line for each node except the input. A name that the table repeats is numbered in the graph.
std::multiset<std::string> lines(const Graph& graph) {
  std::multiset<std::string> result;
  for (const Node& node : graph.nodes()) {
    if (node.inputs.empty()) continue;
    std::vector<Shape> x;
    for (const int input : node.inputs) x.push_back(graph.nodes()[static_cast<std::size_t>(input)].shape);
    CHECK(node.shape.n == batch);
    result.insert(joined(node.name.substr(0, node.name.find('#')), std::visit(Describe{x.front()}, node.op),
                         extents(node.shape), std::to_string(own_parameters(node)),
                         std::to_string(multiply_adds(node.op, x) / batch)));
  }
  return result;
}

/// One line for each row except Flatten: here values stay unflattened until a fully connected op reads them.
std::multiset<std::string> lines(const std::vector<CsvRow>& rows) {
  std::multiset<std::string> result;
  std::string out, unflattened;
  for (CsvRow row : rows) {
    if (row["type"].rfind("Flatten", 0) == 0) {
      unflattened = out;
      continue;
    }
    out = row["out"];
    if (!unflattened.empty() && row["type"] == "Dropout") out = unflattened;
    unflattened.clear();
    if (out.size() > 4 && out.substr(out.size() - 4) == "x1x1") out.resize(out.size() - 4);
    result.insert(joined(
        row["layer"],
        {row["type"], row["kernel"], row["stride"], row["pad"], row["groups"], row["ceil"], row["bias"], row["extra"]},
        out, row["params"], row["macs"]));
  }
  return result;
}

std::vector<std::string> without(const std::multiset<std::string>& a, const std::multiset<std::string>& b) {
  std::vector<std::string> difference;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(difference));
  return difference;
}

}  // namespace

TEST_CASE("every network has the layers of its table, and no others") {
  std::map<std::string, std::vector<CsvRow>> table;
  for (const CsvRow& row : test::read_csv(test::data("network_layers.csv"))) table[row.at("network")].push_back(row);
  CHECK(table.size() == nets::list().size() + neighbours.size());

  for (const nets::Info& info : nets::list()) {
    const std::string name(info.name);
    CAPTURE(name);
    REQUIRE(table.contains(name));
    const std::multiset<std::string> published = lines(table[name]);
    const std::multiset<std::string> built = lines(nets::build(name, {.batch = batch}));
    CHECK(without(published, built).empty());
    CHECK(without(built, published) == std::vector<std::string>{});
    CHECK(built.size() == published.size());
  }
}

TEST_CASE("every network has the parameters, multiply-adds and extents of its table") {
  std::size_t found = 0;
  for (const CsvRow& row : test::read_csv(test::data("networks.csv"))) {
    const std::string name = row.at("name");
    if (neighbours.contains(name)) continue;
    CAPTURE(name);
    CHECK(nets::list()[found++].name == name);

    const Graph graph = nets::build(name, {.batch = batch});
    CHECK(graph.name() == name);
    CHECK(std::to_string(graph.parameter_count()) == row.at("params"));
    CHECK(std::to_string(graph.multiply_adds() / batch) == row.at("macs_per_image"));
    CHECK(extents(graph.nodes().back().shape) == row.at("output"));
    const Shape& x = graph.nodes().front().shape;
    const bool flat = row.at("input").find('x') == std::string::npos;
    CHECK((flat ? std::to_string(x.image()) : extents(x)) == row.at("input"));
  }
  CHECK(found == nets::list().size());
}
