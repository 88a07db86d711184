// Graphs: order and names of nodes, sums over nodes, and errors.

#include "lamina/graph.h"

#include <climits>

#include "tests/support/catch.h"

using namespace lamina::test;

TEST_CASE("a graph keeps its nodes in the order in which they are made") {
  Graph graph("tiny");
  const Value x = graph.input({2, 3, 8, 8});
  const Value y = conv(x, "conv1", {.channels = 4, .kernel = 3, .pad = 1});
  const Value z = add(relu(batch_norm(y, "bn1")), y, "join");

  CHECK(graph.name() == "tiny");
  CHECK(z.shape() == Shape{2, 4, 8, 8});
  CHECK(z.id() == 4);
  REQUIRE(graph.nodes().size() == 5);
  CHECK(graph.nodes()[0].name == "input");
  CHECK(graph.nodes()[1].name == "conv1");
  CHECK(graph.nodes()[1].inputs == std::vector<int>{0});
  CHECK(graph.nodes()[1].params == std::vector<Shape>{{4, 3, 3, 3}, {1, 4, 1, 1}});
  CHECK(graph.nodes()[2].state.size() == 2);
  CHECK(graph.nodes()[3].name == "relu");
  CHECK(graph.nodes()[4].inputs == std::vector<int>{3, 1});
  CHECK(graph.nodes()[4].op == Op{Add{}});
}

TEST_CASE("a graph's parameters and multiply-adds are the sums over its nodes") {
  Graph graph("tiny");
  Value x = graph.input({2, 3, 8, 8});
  x = batch_norm(conv(x, "conv1", {.channels = 4, .kernel = 3, .pad = 1}), "bn1");
  fully_connected(x, "fc", {.outputs = 10, .bias = false});
  CHECK(graph.parameter_count() == (4 * 27 + 4) + 8 + 10 * 256);
  CHECK(graph.multiply_adds() == 2 * (4 * 64 * 27 + 10 * 256));
}

TEST_CASE("sums over nodes that do not fit into 64 bits are errors") {
  Graph graph("vast");
  Value x = graph.input({1, INT_MAX, 1, 1});
  for (const char* name : {"a", "b", "c"}) x = fully_connected(x, name, {.outputs = INT_MAX});
  CHECK_THROWS_AS(graph.parameter_count(), ShapeError);
  CHECK_THROWS_AS(graph.multiply_adds(), ShapeError);
}

TEST_CASE("every op has a function that adds it to a graph") {
  Graph graph("all");
  Value x = graph.input({1, 4, 8, 8}, "data");
  x = conv(x, "conv", {.channels = 4, .kernel = 3, .pad = 1});
  x = lrn(x, "lrn");
  x = max_pool(x, "max", {.window = 2, .stride = 2});
  x = average_pool(x, "average", {.window = 2, .stride = 2});
  x = concat({x, x});
  x = slice(x, "slice", {.first = 2, .count = 4});
  x = global_average_pool(x);
  x = softmax(fully_connected(dropout(relu(batch_norm(x, "bn")), "drop"), "fc", {.outputs = 3}));
  CHECK(x.shape() == Shape{1, 3, 1, 1});

  const Value ids = graph.input({2, 1, 7, 1}, "ids");
  x = embedding(ids, "words", {.vocabulary = 50, .features = 3});
  x = tanh(sigmoid(lstm(x, "lstm", {.hidden = 4, .steps = Steps::last})));
  x = fully_connected(x, "score", {.outputs = 1});
  CHECK(sigmoid_cross_entropy(x, graph.input({2, 1, 1, 1}, "labels")).shape() == Shape{1, 2, 1, 1});
  softmax_cross_entropy(x, graph.input({2, 1, 1, 1}, "classes"), "loss", {.clip = 0.125});
  CHECK(graph.nodes().back().op == Op{SoftmaxCrossEntropy{.clip = 0.125}});

  std::string names;
  for (const Node& node : graph.nodes()) names += std::string(op_name(node.op)) + ' ';
  CHECK(names ==
        "input conv lrn max_pool average_pool concat slice global_average_pool batch_norm relu dropout "
        "fully_connected softmax input embedding lstm sigmoid tanh fully_connected input sigmoid_cross_entropy input "
        "softmax_cross_entropy ");
}

TEST_CASE("whole_numbers() finds the values that are read as labels and ids") {
  Graph graph("sequences");
  const Value ids = graph.input({2, 2, 7, 1}, "ids");
  const Value part = slice(ids, "part", {.first = 1, .count = 1});
  const Value words = embedding(part, "words", {.vocabulary = 50, .features = 3});
  const Value chars = embedding(part, "chars", {.vocabulary = 20, .features = 3});
  const Value labels = graph.input({2, 1, 7, 1}, "labels");
  softmax_cross_entropy(add(words, chars), concat({labels}));
  const std::vector<std::int64_t> numbers = whole_numbers(graph);
  const auto of = [&](const char* name) { return numbers[static_cast<std::size_t>(graph.find(name))]; };
  CHECK(of("ids") == 20);  // the smaller vocabulary of two readers
  CHECK(of("part") == 20);
  CHECK(of("words") == 0);
  CHECK(of("labels") == 3);
  CHECK(of("concat") == 3);
  CHECK(of("softmax_cross_entropy") == 0);
}

TEST_CASE("a used name of a node without parameters gets a number") {
  Graph graph("names");
  Value x = graph.input({1, 1, 2, 2});
  x = relu(relu(relu(x, "act"), "act"), "act");
  relu(relu(x));
  CHECK(graph.find("act") == 1);
  CHECK(graph.find("act#2") == 2);
  CHECK(graph.find("act#3") == 3);
  CHECK(graph.find("relu") == 4);
  CHECK(graph.find("relu#2") == 5);
  CHECK(graph.find("relu#3") == -1);
  CHECK(graph.node("act#2").inputs == std::vector<int>{1});
}

TEST_CASE("a number that makes another used name is skipped") {
  Graph graph("names");
  const Value x = graph.input({1, 1, 2, 2});
  relu(x, "act#2");
  relu(x, "act");
  relu(x, "act");
  CHECK(graph.find("act#3") == 3);
}

TEST_CASE("a used name of a node with parameters is an error") {
  Graph graph("names");
  const Value x = conv(graph.input({1, 1, 2, 2}), "conv1", {.channels = 1, .kernel = 1});
  const std::string said = said_by<UsageError>([&] { batch_norm(x, "conv1"); });
  CHECK(said.find("graph \"names\" already has a node \"conv1\": conv(1, 1x1)") == 0);
  CHECK(said.find("give batch_norm another name") != std::string::npos);
  CHECK(graph.nodes().size() == 2);
}

TEST_CASE("an unknown node is an error with near names") {
  Graph graph("tiny");
  conv(graph.input({1, 1, 2, 2}), "conv1", {.channels = 1, .kernel = 1});
  CHECK(said_by<UsageError>([&] { graph.node("conv2"); }) ==
        "graph \"tiny\" has no node \"conv2\"; did you mean \"conv1\"?");
}

TEST_CASE("a shape error names graph, node, op and shapes, and leaves the graph unchanged") {
  Graph graph("tiny");
  const Value x = graph.input({1, 3, 5, 5});
  CHECK(said_by<ShapeError>([&] { conv(x, "conv1", {.channels = 8, .kernel = 7}); }) ==
        "graph \"tiny\", node \"conv1\": conv(8, 7x7): a window of 7 rows does not fit into 5; x: 1x3x5x5");
  CHECK(graph.nodes().size() == 1);
  CHECK(graph.find("conv1") == -1);
  conv(x, "conv1", {.channels = 8, .kernel = 5});
  CHECK(graph.find("conv1") == 1);
}

TEST_CASE("an input has extents of at least 1") {
  Graph graph("tiny");
  CHECK_THROWS_AS(graph.input({1, 3, 0, 5}), ShapeError);
  CHECK_THROWS_AS(graph.input({-1, 3, 5, 5}), ShapeError);
  CHECK(graph.nodes().empty());
}

TEST_CASE("values of different graphs cannot be joined") {
  Graph a("a"), b("b");
  const Value x = a.input({1, 1, 2, 2}), z = b.input({1, 1, 2, 2});
  CHECK(
      said_by<UsageError>([&] { add(x, z, "join"); }) ==
      "\"join\", add: an input belongs to graph \"b\", another to \"a\"; values of different graphs cannot be joined");
  CHECK(a.nodes().size() == 1);
  CHECK(b.nodes().size() == 1);
}

TEST_CASE("an op without inputs is an error") {
  CHECK(said_by<UsageError>([] { concat({}, "join"); }) ==
        "\"join\", concat: no inputs; the first value of a graph comes from Graph::input");
}

TEST_CASE("values stay valid when their graph moves") {
  Graph graph("moved");
  const Value x = graph.input({1, 1, 2, 2});
  Graph other = std::move(graph);
  relu(x);
  CHECK(other.nodes().size() == 2);
  CHECK(x.shape() == Shape{1, 1, 2, 2});
}

TEST_CASE("a clone has the nodes of its graph, and later nodes of one are not in the other") {
  Graph graph("net");
  const Value y = relu(conv(graph.input({1, 2, 3, 3}), "conv", {.channels = 4, .kernel = 1}));
  Graph copy = graph.clone();
  CHECK(copy.name() == "net");
  relu(copy.value("relu"));
  REQUIRE(copy.nodes().size() == 4);
  CHECK(copy.nodes()[3].name == "relu#2");
  CHECK(copy.nodes()[1].params == graph.nodes()[1].params);
  CHECK(copy.nodes()[2].inputs == graph.nodes()[2].inputs);
  CHECK(relu(y).id() == 3);
  CHECK(graph.nodes().size() == 4);
}

TEST_CASE("shared parameters are one parameter of the graph, named by the first node that uses it") {
  Graph graph("shared");
  Value x = graph.input({1, 4, 3, 3});
  for (const char* name : {"a", "b", "c"}) x = conv(x, name, {.channels = 4, .kernel = 3, .pad = 1});
  batch_norm(batch_norm(x, "norm1"), "norm2");
  CHECK(graph.parameter_count() == 3 * 148 + 16);
  graph.share("c.weight", "b.weight");
  graph.share("a.weight", "c.weight");  // the order of the two names does not matter
  graph.share_all("norm2", "norm1");
  graph.share_all("norm2", "norm1");
  CHECK(graph.parameter_count() == 144 + 3 * 4 + 8);
  CHECK(own_parameters(graph.node("b")) == 4);
  const Stored weight = graph.parameters().front(), mean = graph.states().front();
  CHECK(weight.name == "a.weight");
  CHECK(weight.aliases == std::vector<std::string>{"b.weight", "c.weight"});
  CHECK(graph.node("c").params_of[0] == Slot{1, 0});
  CHECK(mean.aliases == std::vector<std::string>{"norm2.running_mean"});
  CHECK(graph.states().size() == 2);
  CHECK(graph.clone().parameter_count() == graph.parameter_count());
  const Graph start = graph.first(3);
  CHECK(start.nodes().size() == 3);
  CHECK(start.find("c") == -1);
  CHECK(start.parameter_count() == 144 + 2 * 4);
}

TEST_CASE("tensors that cannot be shared are refused by name, and the graph is unchanged") {
  Graph graph("shared");
  Value x = graph.input({1, 4, 3, 3});
  x = batch_norm(conv(x, "conv", {.channels = 4, .kernel = 1}), "norm1");
  x = batch_norm(dropout(scale_shift(x, "fixed"), "drop"), "norm2");
  fully_connected(x, "fc", {.outputs = 4});
  CHECK_THROWS_WITH(graph.share("fc.weigth", "conv.weight"), ContainsSubstring("did you mean \"fc.weight\""));
  CHECK_THROWS_WITH(graph.share("fc.weight", "conv.weight"), ContainsSubstring("it is 4x4x3x3, and not 4x4x1x1"));
  CHECK_THROWS_AS(graph.share("fc.weight", "conv.weight"), ShapeError);
  CHECK_THROWS_WITH(graph.share("norm1.weight", "norm1.bias"), ContainsSubstring("node norm1 would use it twice"));
  graph.share("norm2.weight", "norm1.bias");
  CHECK_THROWS_WITH(graph.share_all("norm2", "norm1"), ContainsSubstring("would use it twice"));
  CHECK_THROWS_WITH(graph.share("norm1.weight", "norm2.running_mean"), ContainsSubstring("share two of a kind"));
  CHECK_THROWS_WITH(graph.share("fixed.scale", "norm2.running_mean"), ContainsSubstring("no parameter or running"));
  CHECK_THROWS_WITH(graph.share_all("drop", "drop"), ContainsSubstring("do not have the same parameters"));
  CHECK_THROWS_WITH(graph.share_all("conv", "norm1"), ContainsSubstring("do not have the same parameters"));
  CHECK(graph.parameters().size() == 7);
  CHECK(graph.states().size() == 7);
}
