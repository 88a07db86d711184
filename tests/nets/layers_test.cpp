// Every network is compared with a table of its layers, which was made by running the same network in PyTorch
// (docs/networks.md).

#include <charconv>
#include <iterator>

#include "lamina/nets.h"
#include "tests/support/catch.h"
#include "tests/support/csv.h"
#include "tests/support/data.h"

using namespace lamina::test;

namespace {

// Networks that are not in the zoo. The tables have them to show the differences between variants.
const std::set<std::string> neighbours{"googlenet_caffe", "resnet50_v1"};

constexpr int batch = 2;

std::string text(Size size) { return std::to_string(size.h) + 'x' + std::to_string(size.w); }

/// A number with six digits, as in the tables.
std::string text(double number) {
  char digits[32];
  return {digits, std::to_chars(digits, digits + sizeof digits, number, std::chars_format::general, 6).ptr};
}

/// The extents of a value for one image. A map of one pixel is a vector.
std::string extents(const Shape& shape) {
  if (shape.h == 1 && shape.w == 1) return std::to_string(shape.c);
  return std::to_string(shape.c) + 'x' + text({shape.h, shape.w});
}

/// The columns of a table from type to extra.
struct Described {
  std::string type, kernel{}, stride{}, pad{}, groups{}, ceil{}, bias{}, extra{};
};

struct Describe {
  const Shape& x;

  /// An op that has only a type in the tables, or that no table has.
  static Described plain(const Op& op) {
    static const std::map<std::string_view, const char*> types = {
        {"relu", "ReLU"}, {"softmax", "Softmax"}, {"multiply", "Mul"}, {"scale_shift", "LayerScale"},
        {"add", "Add"},   {"concat", "Concat"},   {"gelu", "GELU"},    {"sigmoid", "Sigmoid"},
        {"silu", "SiLU"}, {"tanh", "Tanh"}};
    const auto found = types.find(op_name(op));
    return {.type = found == types.end() ? "other" : found->second};
  }
  template <class T>
  Described operator()(const T& op) const {
    return plain(op);
  }
  template <class Convolution>
  Described convolution(const char* type, const Convolution& op) const {
    REQUIRE(op.dilation == 1);
    return {.type = type,
            .kernel = text(op.kernel),
            .stride = text(op.stride),
            .pad = text(op.pad),
            .groups = std::to_string(op.groups),
            .bias = op.bias ? "yes" : "no"};
  }
  Described operator()(const Conv& op) const { return convolution("Conv2d", op); }
  Described operator()(const ConvTranspose& op) const {
    Described described = convolution("ConvTranspose2d", op);
    described.extra = "output_padding=" + text(op.output_pad);
    return described;
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
  Described operator()(const LayerNorm& op) const { return {.type = "LayerNorm", .extra = "eps=" + text(op.epsilon)}; }
  Described operator()(const Lrn& op) const {
    return {.type = "LocalResponseNorm",
            .extra = "n=" + std::to_string(op.size) + " alpha=" + text(op.alpha) + " beta=" + text(op.beta) +
                     " k=" + text(op.k)};
  }
  Described operator()(const FullyConnected& op) const { return {.type = "Linear", .bias = op.bias ? "yes" : "no"}; }
  Described operator()(const Dropout& op) const { return {.type = "Dropout", .extra = "p=" + text(op.rate)}; }
  Described operator()(const Pointwise& op) const {
    if (op.function == Function::clip) return {.type = "Hardtanh", .extra = "min=" + text(op.a) + " max=" + text(op.b)};
    if (op.function == Function::leaky_relu) return {.type = "LeakyReLU", .extra = "slope=" + text(op.a)};
    return plain(op);
  }
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

/// One line for each node except the input. A name that occurs several times in the table has a number in the graph.
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

/// One line for each row except Flatten. Our graphs have no Flatten: the fully connected op reads the unflattened
/// value.
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

TEST_CASE("every network has exactly the layers of its table") {
  std::map<std::string, std::vector<CsvRow>> table;
  for (const CsvRow& row : read_csv(data("network_layers.csv"))) table[row.at("network")].push_back(row);
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
  for (const CsvRow& row : read_csv(data("networks.csv"))) {
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
