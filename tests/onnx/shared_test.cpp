// Numbers of a file that several nodes use: one parameter, or several that the exporter has written once.

#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

const std::string w = tensor("w", {2, 2, 1, 1}, {1, 2, 3, 4}), b = tensor("b", {2}, {5, 6});

/// A node as PyTorch's new exporter writes it: with the call that it comes from.
std::string traced(std::string node, const std::string& call) {
  std::string entry;
  protozero::pbf_writer(entry).add_string(1, "pkg.torch.onnx.fx_node");
  protozero::pbf_writer(entry).add_string(2, call);
  protozero::pbf_writer(node).add_message(9, entry);
  return node;
}

std::vector<std::string> names(const std::vector<Stored>& all) {
  std::vector<std::string> found;
  for (const Stored& its : all) {
    found.push_back(its.name);
    for (const std::string& alias : its.aliases) found.back() += " " + alias;
  }
  return found;
}

std::vector<std::string> parameters(const Model& model) {
  const OnnxModel read = lamina::test::read(model);
  CHECK(read.weights.size() == read.graph.parameters().size() + read.graph.states().size());
  return names(read.graph.parameters());
}

using Names = std::vector<std::string>;

/// Two batch norms whose numbers are those of new ones.
Model norms(const std::string& first_call, const std::string& second_call) {
  const auto norm = [](const char* x, const char* y, const char* name) {
    return node("BatchNormalization", {x, "one", "zero", "zero", "one"}, {y}, {}, name);
  };
  return of_nodes({traced(norm("x", "h", "first"), first_call), traced(norm("h", "y", "second"), second_call)},
                  {1, 2, 3, 3}, {tensor("one", {2}, {1, 1}), tensor("zero", {2}, {0, 0})});
}

}  // namespace

TEST_CASE("a filter and a bias that two convolutions read are one parameter each, a bias also where an Add adds it") {
  const auto again = node("Conv", {"h", "w"}, {"z"}, {}, "second");
  const auto model = [](const std::string& second, const std::string& add) {
    return of_nodes({node("Conv", {"x", "w", "b"}, {"h"}, {}, "first"), second, add}, {1, 2, 3, 3},
                    {w, b, tensor("c", {1, 2, 1, 1}, {5, 6})});
  };
  CHECK(parameters(model(again, node("Relu", {"z"}, {"y"}))) == Names{"first.weight second.weight", "first.bias"});
  CHECK(parameters(model(node("Conv", {"h", "w", "b"}, {"z"}, {}, "second"), node("Relu", {"z"}, {"y"}))) ==
        Names{"first.weight second.weight", "first.bias second.bias"});
  CHECK(parameters(model(again, node("Add", {"z", "c"}, {"y"}))) ==
        Names{"first.weight second.weight", "first.bias", "second.bias"});  // equal numbers of another initializer
}

TEST_CASE(
    "a parameter is one through Identity, Transpose and what else is folded, in the order that its readers take") {
  const std::string table = tensor("table", {3, 2}, {1, 2, 3, 4, 5, 6});
  const auto tied = [&](std::vector<std::string> head) {
    std::vector<std::string> nodes = {node("Gather", {"table", "x"}, {"h"}, {}, "table")};
    nodes.insert(nodes.end(), head.begin(), head.end());
    return parameters(of_nodes(
        nodes, {4}, {table, tensor("copy", {2, 3}, {1, 3, 5, 2, 4, 6}), tensor("other", {3, 2}, {1, 2, 3, 4, 5, 6})}));
  };
  const Names one = {"table.weight head.weight"}, two = {"table.weight", "head.weight"};
  const auto matmul = [](const char* factor) { return node("MatMul", {"h", factor}, {"y"}, {}, "head"); };
  const auto gemm = [](const char* factor) {
    return node("Gemm", {"h", factor}, {"y"}, {{"transB", std::int64_t{1}}}, "head");
  };
  CHECK(tied({gemm("table")}) == one);
  CHECK(tied({node("Identity", {"table"}, {"same"}), gemm("same")}) == one);
  CHECK(tied({node("Transpose", {"table"}, {"t"}), matmul("t")}) == one);
  CHECK(tied({matmul("copy")}) == one);  // an exporter has folded the Transpose
  CHECK(tied({gemm("other")}) == two);
  CHECK(tied({node("Add", {"table", "table"}, {"double"}), gemm("double")}) == two);
}

TEST_CASE("a matrix whose transpose is used as well is two parameters, which is said") {
  const auto notes = [](std::vector<std::string> nodes) {
    return read(of_nodes(std::move(nodes), {1, 2}, {tensor("w", {2, 2}, {1, 2, 3, 4})})).notes;
  };
  const std::string encoder = node("Gemm", {"x", "w"}, {"h"}, {}, "in");
  const std::vector<std::string> said =
      notes({encoder, node("Gemm", {"h", "w"}, {"y"}, {{"transB", std::int64_t{1}}}, "out")});
  REQUIRE(said.size() == 1);
  CHECK(said[0] ==
        "in.weight and out.weight are the parameter \"w\" in different orders or scales: here they train as two");
  CHECK(notes({encoder, node("Gemm", {"h", "w"}, {"y"}, {}, "out")}).empty());
}

TEST_CASE(
    "numbers that are all alike are one parameter where the file has one value, and no calls that say otherwise") {
  const Names shared = {"first.weight second.weight", "first.bias second.bias"};
  const Names apart = {"first.weight", "first.bias", "second.weight", "second.bias"};
  CHECK(parameters(norms("", "")) == shared);
  CHECK(read(norms("", "")).graph.states().size() == 2);
  Model copied = norms("", "");  // as the exporter by TorchScript writes equal parameters
  copied.nodes.insert(copied.nodes.begin(),
                      {node("Identity", {"one"}, {"one2"}), node("Identity", {"zero"}, {"zero2"})});
  copied.nodes.back() = node("BatchNormalization", {"h", "one2", "zero2", "zero2", "one2"}, {"y"}, {}, "second");
  CHECK(parameters(copied) == apart);
  CHECK(read(copied).graph.states().size() == 4);
  const std::string a = "args = (%x, %p_a_weight, %p_a_bias, %b_a_running_mean, 0.1), kwargs = {})";
  CHECK(parameters(norms(a, a)) == shared);
  CHECK(parameters(norms(a, "args = (%h, %p_b_weight, %p_b_bias, %b_b_running_mean, 0.1), kwargs = {})")) == apart);
}

TEST_CASE("the directions of an LSTM share nothing with each other, and all with those of a second use") {
  const auto of = [](const char* x, const char* y, const char* name) {
    return node("LSTM", {x, "w", "r", "b"}, {y}, {{"hidden_size", std::int64_t{1}}, {"direction", "bidirectional"}},
                name);
  };
  Model model =
      of_nodes({of("x", "h", "one"), of("z", "s", "two"), node("Add", {"h", "s"}, {"y"})}, {3, 1, 1},
               {tensor("w", {2, 4, 1}, {1, 2, 3, 4, 1, 2, 3, 4}), tensor("r", {2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8}),
                tensor("b", {2, 8}, std::vector<float>(16))});
  model.inputs.push_back(value("z", {3, 1, 1}));
  const Names all = parameters(model);
  REQUIRE(all.size() == 6);
  for (const std::string& name : all) {
    INFO(name);
    CHECK((name.find("one.forward") != name.npos) == (name.find("two.forward") != name.npos));
    CHECK((name.find("one.reverse") != name.npos) == (name.find("two.reverse") != name.npos));
  }
}

TEST_CASE("a shared parameter is one initializer of a file that is written, and one when it is read back") {
  Graph graph("shared");
  Value x = graph.input({1, 3, 4, 4}, "x");
  for (const std::string use : {"a", "b"}) x = batch_norm(conv(x, use, {.channels = 3, .kernel = 1}), use + ".norm");
  fully_connected(global_average_pool(x), "fc", {.outputs = 3});
  graph.share_all("b", "a");
  graph.share_all("b.norm", "a.norm");
  graph.share("fc.weight", "a.weight");  // of 3 x 3, and the filters of 3 x 3 x 1 x 1
  const Folder folder;
  const TensorFile weights = counted_weights(graph);
  write_onnx(folder / "shared.onnx", graph, weights);
  const OnnxModel back = read_onnx(folder / "shared.onnx");
  CHECK(names(back.graph.parameters()) == names(graph.parameters()));
  CHECK(names(back.graph.states()) == names(graph.states()));
  for (const auto& [name, tensor] : back.weights) CHECK(tensor.values == weights.at(name).values);
}
