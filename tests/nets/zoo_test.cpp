// The zoo's options, limits and errors, and differences between similar networks.

#include "lamina/nets.h"

#include "tests/support/catch.h"

using namespace lamina;

namespace {

using Names = std::vector<std::string>;

const Shape& shape(const Graph& graph, std::string_view node) { return graph.node(node).shape; }

Names inputs(const Graph& graph, std::string_view node) {
  Names names;
  for (const int i : graph.node(node).inputs) names.push_back(graph.nodes()[static_cast<std::size_t>(i)].name);
  return names;
}

template <class Error>
std::string refusal(std::string_view name, const nets::Options& options) {
  return test::said_by<Error>([&] { nets::build(name, options); });
}

}  // namespace

TEST_CASE("alexnet has the same parameters with images of 227 pixels, and normalises after its first ReLU") {
  const Graph graph = nets::build("alexnet", {.batch = 1, .image = 227});
  CHECK(shape(graph, "conv1") == Shape{1, 96, 55, 55});
  CHECK(shape(graph, "pool1") == Shape{1, 96, 27, 27});
  CHECK(graph.parameter_count() == 60'965'224);
  CHECK(graph.multiply_adds() == 724'406'816);
  CHECK(inputs(graph, "norm1") == Names{"relu1"});
}

TEST_CASE("resnet200 has a batch norm in its stem, and no batch norm after its projections") {
  const Graph graph = nets::build("resnet200", {.batch = 1});
  CHECK(inputs(graph, "bn1") == Names{"conv1"});
  // The first block projects the stem's output. The first blocks of later stages project the activated x. Other blocks
  // add x.
  CHECK(inputs(graph, "layer1.0.downsample.0") == Names{"maxpool"});
  CHECK(inputs(graph, "layer2.0.downsample.0") == Names{"layer2.0.relu"});
  CHECK(inputs(graph, "layer2.0.conv1") == Names{"layer2.0.relu"});
  CHECK(inputs(graph, "layer2.1.add") == Names{"layer2.1.conv3", "layer2.0.add"});
  CHECK(inputs(graph, "layer2.1.bn1") == Names{"layer2.0.add"});
}

TEST_CASE("unet has one output for each pixel of an image of any size") {
  const Graph odd = nets::build("unet", {.batch = 1, .image = 35});
  CHECK(shape(odd, "outc.conv") == Shape{1, 2, 35, 35});
  CHECK(shape(odd, "up3.up") == Shape{1, 128, 16, 16});  // the map before the pool was 17 x 17
  CHECK(inputs(odd, "up3.concat") == Names{"down1.maxpool_conv.1.double_conv.5", "up3.pad"});
  CHECK(nets::build("unet", {.batch = 1}).find("up3.pad") == -1);
}

TEST_CASE("a layer scale of convnext_tiny trains one number for each channel") {
  const Graph graph = nets::build("convnext_tiny", {.batch = 1});
  const Node& scale = graph.node("features.1.0.layer_scale");
  CHECK(own_parameters(scale) == 96);
  CHECK(scale.fixed == std::vector{false, true});
}

TEST_CASE("dcgan_discriminator's input has the shape of dcgan_generator's output") {
  const Shape image = nets::build("dcgan_generator", {.batch = 3}).nodes().back().shape;
  CHECK(image == Shape{3, 3, 64, 64});
  CHECK(shape(nets::build("dcgan_discriminator", {.batch = 3}), "input") == image);
}

TEST_CASE("names that repeat in a block are numbered in running order") {
  const Graph graph = nets::build("resnet50", {.batch = 1});
  CHECK(inputs(graph, "layer1.0.relu") == Names{"layer1.0.bn1"});
  CHECK(inputs(graph, "layer1.0.relu#2") == Names{"layer1.0.bn2"});
  CHECK(inputs(graph, "layer1.0.relu#3") == Names{"layer1.0.add"});
}

TEST_CASE("every network works with its smallest image, and refuses an image one pixel smaller") {
  for (const nets::Info& info : nets::list()) {
    CAPTURE(std::string(info.name));
    const nets::Options smallest{.batch = 1, .image = info.smallest_image};
    CHECK(shape(nets::build(info.name, smallest), "input").h == info.smallest_image);
    if (info.smallest_image == 1) continue;

    const auto square = [](int extent) { return std::to_string(extent) + 'x' + std::to_string(extent); };
    const std::string error = refusal<ShapeError>(info.name, {.batch = 1, .image = info.smallest_image - 1});
    CAPTURE(error);
    CHECK(error.starts_with(std::string(info.name) + " needs images of at least " + square(info.smallest_image) +
                            ", not " + square(info.smallest_image - 1) + ": graph"));
  }
}

TEST_CASE("a network's graph follows the options") {
  const Graph graph = nets::build("vgg16", {.batch = 3, .image = 64, .classes = 7, .dropout = false, .softmax = false});
  CHECK(shape(graph, "input") == Shape{3, 3, 64, 64});
  CHECK(shape(graph, "classifier.6") == Shape{3, 7, 1, 1});
  CHECK(graph.nodes().back().name == "classifier.6");
  CHECK(graph.find("classifier.2") == -1);
}

TEST_CASE("classes reach every network's output") {
  for (const nets::Info& info : nets::list()) {
    CAPTURE(std::string(info.name));
    Shape output = nets::build(info.name, {.batch = 2}).nodes().back().shape;
    CHECK(output.c == info.classes);
    output.c = 5;
    CHECK(nets::build(info.name, {.batch = 2, .classes = 5}).nodes().back().shape == output);
  }
}

TEST_CASE("a softmax ends the networks that were published with one, and can be left out") {
  for (const nets::Info& info : nets::list()) {
    CAPTURE(std::string(info.name));
    const auto ends_in_softmax = [&](bool wanted) {
      const Graph graph = nets::build(info.name, {.batch = 1, .softmax = wanted});
      return std::holds_alternative<Softmax>(graph.nodes().back().op);
    };
    CHECK(ends_in_softmax(true) == info.protocol.softmax);
    CHECK_FALSE(ends_in_softmax(false));
  }
}

TEST_CASE("dropout can be left out of every network") {
  for (const nets::Info& info : nets::list()) {
    CAPTURE(std::string(info.name));
    const Graph with = nets::build(info.name, {.batch = 1}),
                without = nets::build(info.name, {.batch = 1, .dropout = false});
    for (const Node& node : without.nodes()) CHECK_FALSE(std::holds_alternative<Dropout>(node.op));
    CHECK(with.parameter_count() == without.parameter_count());
  }
}

TEST_CASE("a width divisor narrows the hidden layers, rounded up, and keeps the groups") {
  const Graph resnet = nets::build("resnet50", {.batch = 1, .width_divisor = 16});
  CHECK(shape(resnet, "conv1").c == 4);
  CHECK(shape(resnet, "layer4.2.conv3").c == 4 * 32);
  CHECK(shape(resnet, "fc").c == 1000);

  const Graph alexnet = nets::build("alexnet", {.batch = 1, .width_divisor = 32});
  CHECK(shape(alexnet, "conv1").c == 4);  // 96 / 32 is 3, rounded up to a multiple of conv2's two groups
  CHECK(alexnet.node("conv2").params.front() == Shape{8, 2, 5, 5});

  const Graph inception = nets::build("inception_v1", {.batch = 1, .width_divisor = 7});
  CHECK(shape(inception, "inception3a.concat").c == 10 + 19 + 5 + 5);  // 64, 128, 32 and 32, divided by 7
}

TEST_CASE("every network keeps all its nodes, even with the largest width divisor") {
  const int divisor = GENERATE(2, 3, 8, 1000, 1 << 30);
  for (const nets::Info& info : nets::list()) {
    CAPTURE(std::string(info.name), divisor);
    const Graph wide = nets::build(info.name, {.batch = 1});
    const Graph narrow = nets::build(info.name, {.batch = 1, .width_divisor = divisor});
    CHECK(narrow.nodes().size() == wide.nodes().size());
    CHECK(narrow.parameter_count() < wide.parameter_count());
  }
}

TEST_CASE("an unknown network is an error with near names") {
  CHECK(refusal<UsageError>("resnet51", {}) ==
        "no network \"resnet51\"; did you mean \"resnet50\", \"resnet18\" or \"resnet34\"?");
  CHECK_THROWS_AS(nets::info("resnet50_v1"), UsageError);
  CHECK(nets::info("vgg19").source == "Simonyan, Zisserman 2014, E; the authors' deploy file");
}

TEST_CASE("options out of range are errors that name the option") {
  CHECK(refusal<UsageError>("vgg16", {.batch = 0}) == "vgg16: option batch is 0, but must be between 1 and 1073741824");
  const nets::Options options = GENERATE(as<nets::Options>{}, nets::Options{.batch = -1}, nets::Options{.image = -1},
                                         nets::Options{.classes = -1}, nets::Options{.width_divisor = 0},
                                         nets::Options{.classes = 2'000'000'000});
  CHECK_THROWS_AS(nets::build("inception_v1", options), UsageError);
}

TEST_CASE("an image too large for 32-bit extents is an error, not an overflow") {
  CHECK_THROWS_AS(nets::build("resnet18", {.batch = 1, .image = 1 << 30}), ShapeError);
  CHECK_THROWS_AS(nets::build("vgg16", {.batch = 1, .image = 40'000}), ShapeError);
}

TEST_CASE("protocols match the published tables") {
  const nets::Protocol alexnet = nets::info("alexnet").protocol, resnet = nets::info("resnet50").protocol;
  CHECK((alexnet.softmax && alexnet.input_gradient && alexnet.accumulate));
  CHECK((!resnet.softmax && !resnet.input_gradient && resnet.accumulate));
}
