// Numbers of a file that several nodes use: one parameter, or several that the exporter has written once.

#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;

namespace {

Names names(const std::vector<Stored>& all) {
  Names found;
  for (const Stored& its : all) {
    found.push_back(its.name);
    for (const std::string& alias : its.aliases) found.back() += " " + alias;
  }
  return found;
}

Names parameters(const Model& model) {
  const OnnxModel read = lamina::test::read(model);
  CHECK(read.weights.size() == read.graph.parameters().size() + read.graph.states().size());
  return names(read.graph.parameters());
}

/// Two batch norms whose numbers are those of new ones, with the calls that PyTorch's new exporter notes.
Model norms(const std::vector<std::string>& calls, const std::string& copies = "", const std::string& of_second = "") {
  Model model =
      "x[1,2,3,3] one[2] = all 1; zero[2] = all 0; h = BatchNormalization(x, one, zero, zero, one) \"first\" " +
      copies + "y = BatchNormalization(h, one" + of_second + ", zero" + of_second + ", zero" + of_second + ", one" +
      of_second + ") \"second\"";
  for (std::size_t i = 0; i < calls.size(); ++i)
    Writer(model.nodes[i]).add_message(9, entry("pkg.torch.onnx.fx_node", calls[i]));
  return model;
}

}  // namespace

TEST_CASE("a filter and a bias that two convolutions read are one parameter each, a bias also where an Add adds it") {
  const auto of = [](const std::string& second, const std::string& last) {
    return parameters("x[1,2,3,3] w[2,2,1,1] = 1..; b[2] = 5, 6; c[1,2,1,1] = 5, 6; h = Conv(x, w, b) \"first\" z = " +
                      second + " \"second\" y = " + last);
  };
  CHECK(of("Conv(h, w)", "Relu(z)") == Names{"first.weight second.weight", "first.bias"});
  CHECK(of("Conv(h, w, b)", "Relu(z)") == Names{"first.weight second.weight", "first.bias second.bias"});
  // equal numbers of another initializer
  CHECK(of("Conv(h, w)", "Add(z, c)") == Names{"first.weight second.weight", "first.bias", "second.bias"});
}

TEST_CASE(
    "a parameter is one through Identity, Transpose and what else is folded, in the order that its readers take") {
  const auto tied = [&](const std::string& head) {
    return parameters(R"(x[4] table[3,2] = 1..; copy[2,3] = 1, 3, 5, 2, 4, 6; other[3,2] = 1..
      h = Gather(table, x) "table" )" +
                      head + " \"head\"");
  };
  const Names one = {"table.weight head.weight"}, two = {"table.weight", "head.weight"};
  CHECK(tied("y = Gemm<transB=1>(h, table)") == one);
  CHECK(tied("same = Identity(table) y = Gemm<transB=1>(h, same)") == one);
  CHECK(tied("t = Transpose(table) y = MatMul(h, t)") == one);
  CHECK(tied("y = MatMul(h, copy)") == one);  // an exporter has folded the Transpose
  CHECK(tied("y = Gemm<transB=1>(h, other)") == two);
  CHECK(tied("double = Add(table, table) y = Gemm<transB=1>(h, double)") == two);
}

TEST_CASE("a matrix that is also used transposed becomes two parameters, and a note says so") {
  const auto notes = [](const std::string& second) {
    return read("x[1,2] w[2,2] = 1..; h = Gemm(x, w) \"in\" y = " + second + "(h, w) \"out\"").notes;
  };
  CHECK(
      notes("Gemm<transB=1>") ==
      Names{"in.weight and out.weight are the parameter \"w\" in different orders or scales: here they train as two"});
  CHECK(notes("Gemm").empty());
}

TEST_CASE(
    "numbers that are all alike are one parameter where the file has one value, and no calls that say otherwise") {
  const Names shared = {"first.weight second.weight", "first.bias second.bias"};
  const Names apart = {"first.weight", "first.bias", "second.weight", "second.bias"};
  CHECK(parameters(norms({})) == shared);
  CHECK(read(norms({})).graph.states().size() == 2);
  // as the exporter by TorchScript writes equal parameters
  const Model copied = norms({}, "one2 = Identity(one) zero2 = Identity(zero) ", "2");
  CHECK(parameters(copied) == apart);
  CHECK(read(copied).graph.states().size() == 4);
  const std::string a = "args = (%x, %p_a_weight, %p_a_bias, %b_a_running_mean, 0.1), kwargs = {})";
  CHECK(parameters(norms({a, a})) == shared);
  CHECK(parameters(norms({a, "args = (%h, %p_b_weight, %p_b_bias, %b_b_running_mean, 0.1), kwargs = {})"})) == apart);
}

TEST_CASE("the directions of an LSTM share nothing with each other, and everything with a second use") {
  const Names all = parameters(R"(
    x[3,1,1] z[3,1,1] w[2,4,1] = 1, 2, 3, 4, 1, 2, 3, 4; r[2,4,1] = 1..; b[2,8] = all 0
    h = LSTM<hidden_size=1, direction=bidirectional>(x, w, r, b) "one"
    s = LSTM<hidden_size=1, direction=bidirectional>(z, w, r, b) "two" y = Add(h, s))");
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
