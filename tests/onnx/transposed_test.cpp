// ConvTranspose: by its definition, and as which convolution.

#include <algorithm>
#include <array>
#include <random>

#include "lamina/error.h"
#include "lamina/onnx.h"
#include "read_model.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::test;
using Catch::Matchers::ContainsSubstring;

namespace {

struct Along {
  std::int64_t input = 1, kernel = 1, stride = 1, dilation = 1, begin = 0, end = 0, added = 0;
  std::int64_t output() const { return stride * (input - 1) + dilation * (kernel - 1) + 1 + added - begin - end; }
};

struct Transposed {
  std::int64_t images = 1, groups = 1, channels = 1, filters = 1;  ///< channels and filters of each group
  std::vector<Along> axes{};
  std::vector<float> weights{}, bias{};

  std::int64_t elements() const {
    std::int64_t count = channels * groups * filters;
    for (const Along& a : axes) count *= a.kernel;
    return count;
  }
};

Model model_of(const Transposed& its) {
  const auto list = [&](const char* name, std::int64_t Along::*number) {
    Extents numbers;
    for (const Along& a : its.axes) numbers.push_back(a.*number);
    return Attribute(name, numbers);
  };
  Extents pads, x = {its.images, its.channels * its.groups}, weights = {x[1], its.filters};
  for (const Along& a : its.axes) pads.push_back(a.begin), x.push_back(a.input), weights.push_back(a.kernel);
  for (const Along& a : its.axes) pads.push_back(a.end);
  const std::vector<Attribute> attributes = {{"group", its.groups},
                                             {"pads", pads},
                                             list("strides", &Along::stride),
                                             list("dilations", &Along::dilation),
                                             list("output_padding", &Along::added)};
  std::vector<std::string> initializers = {tensor("w", weights, its.weights)};
  if (!its.bias.empty()) initializers.push_back(tensor("b", {its.filters * its.groups}, its.bias));
  return of_nodes({node("ConvTranspose", {"x", "w", its.bias.empty() ? "" : "b"}, {"y"}, attributes)}, x,
                  std::move(initializers));
}

/// Each cell of the input, which counts from 0, is added to the results that it reaches.
std::vector<double> by_definition(const Transposed& its) {
  std::array<Along, 3> axes;
  std::copy(its.axes.begin(), its.axes.end(), axes.end() - static_cast<std::ptrdiff_t>(its.axes.size()));
  std::int64_t plane = 1, cells = 1, kernel = 1;
  for (const Along& a : axes) plane *= a.output(), cells *= a.input, kernel *= a.kernel;
  const std::int64_t filters = its.filters * its.groups, channels = its.channels * its.groups;
  std::vector<double> y(static_cast<std::size_t>(its.images * filters * plane), 0);
  for (std::size_t i = 0; !its.bias.empty() && i < y.size(); ++i) {
    y[i] = its.bias[i / static_cast<std::size_t>(plane) % static_cast<std::size_t>(filters)];
  }
  for (std::int64_t i = 0; i < its.images * channels * cells; ++i) {
    const std::int64_t channel = i / cells % channels, image = i / cells / channels;
    for (std::int64_t k = 0; k < its.filters * kernel; ++k) {
      const std::int64_t filter = channel / its.channels * its.filters + k / kernel;
      std::int64_t cell = i % cells, element = k % kernel, at = 0, step = 1;
      bool inside = true;
      for (std::size_t axis = 3; axis-- > 0;) {
        const Along& a = axes[axis];
        const std::int64_t to = a.stride * (cell % a.input) + a.dilation * (element % a.kernel) - a.begin;
        inside = inside && to >= 0 && to < a.output();
        at += to * step;
        step *= a.output(), cell /= a.input, element /= a.kernel;
      }
      if (!inside) continue;
      y[static_cast<std::size_t>((image * filters + filter) * plane + at)] +=
          static_cast<double>(i) * its.weights[static_cast<std::size_t>(channel * its.filters * kernel + k)];
    }
  }
  return y;
}

Conv conv_of(const OnnxModel& model) { return std::get<Conv>(model.graph.nodes().back().op); }

Transposed square(std::int64_t kernel, std::int64_t stride, std::int64_t pad = 0) {
  const Along a{.input = 3, .kernel = kernel, .stride = stride, .begin = pad, .end = pad};
  Transposed its{.channels = 2, .filters = 3, .axes = {a, a}};
  its.weights.assign(static_cast<std::size_t>(its.elements()), 1);
  return its;
}

}  // namespace

TEST_CASE("a transposed convolution adds each cell to the results that it reaches") {
  std::mt19937 random(1);
  const auto draw = [&](int least, int most) {
    return least + static_cast<int>(random() % static_cast<unsigned>(most - least + 1));
  };
  for (int round = 0; round < 200; ++round) {
    Transposed its{.images = draw(1, 2), .groups = draw(1, 2), .channels = draw(1, 2), .filters = draw(1, 3)};
    its.axes.resize(static_cast<std::size_t>(draw(1, 3)));
    bool any = true;
    for (Along& a : its.axes) {
      a = {.input = draw(1, 3), .kernel = draw(1, 3), .stride = draw(1, 3), .dilation = draw(1, 2)};
      a.begin = draw(0, 3), a.end = draw(0, 3), a.added = draw(0, 2);
      any = any && a.output() > 0;
    }
    for (std::int64_t i = its.elements(); i > 0; --i) its.weights.push_back(static_cast<float>(draw(-9, 9)));
    if (draw(0, 1) == 1) {
      for (std::int64_t i = its.filters * its.groups; i > 0; --i) its.bias.push_back(static_cast<float>(draw(-9, 9)));
    }
    CAPTURE(round, its.groups, its.axes.size());
    if (!any) {
      CHECK_THROWS_AS(read(model_of(its)), FileError);
      continue;
    }
    const OnnxModel model = read(model_of(its));
    Extents extents = {its.images, its.filters * its.groups};
    for (const Along& a : its.axes) extents.push_back(a.output());
    CHECK(model.output.extents == extents);
    CHECK(output_of(model) == by_definition(its));  // whole numbers: exact
  }
}

TEST_CASE(
    "with a stride of 1 a transposed convolution is one of the same kernel, with others neighbours are channels") {
  CHECK(conv_of(read(model_of(square(3, 1)))) == Conv{.channels = 3, .kernel = 3, .pad = 2, .bias = false});
  CHECK(conv_of(read(model_of(square(3, 1, 1)))) == Conv{.channels = 3, .kernel = 3, .pad = 1, .bias = false});
  Transposed dilated = square(3, 1);
  for (Along& a : dilated.axes) a.dilation = 2;
  CHECK(conv_of(read(model_of(dilated))) == Conv{.channels = 3, .kernel = 3, .pad = 4, .dilation = 2, .bias = false});
  CHECK(conv_of(read(model_of(square(2, 2)))) == Conv{.channels = 12, .kernel = 1, .bias = false, .trainable = false});
  // Neighbours take different cells: there are zeros.
  CHECK(conv_of(read(model_of(square(4, 2, 1)))) ==
        Conv{.channels = 12, .kernel = 3, .pad = 1, .bias = false, .trainable = false});
  Transposed biased = square(2, 2);
  biased.bias = {1, 2, 3};
  CHECK(conv_of(read(model_of(biased))) == Conv{.channels = 12, .kernel = 1, .trainable = false});
  biased = square(2, 1);
  biased.bias = {1, 2, 3};
  CHECK(conv_of(read(model_of(biased))) == Conv{.channels = 3, .kernel = 2, .pad = 1});
  CHECK_FALSE(conv_of(read(model_of(square(1, 1, 1)))).trainable);  // the pads exceed the reach: zeros are added
  Transposed cut{.axes = {{.input = 1, .kernel = 2, .begin = 1}, {.input = 1}, {.input = 1}}};
  cut.weights = {1, 1};  // one of them is never used
  CHECK_FALSE(conv_of(read(model_of(cut))).trainable);
  // 7 is no multiple of 2: every result is a channel.
  CHECK(conv_of(read(model_of(square(3, 2)))) == Conv{.channels = 147, .kernel = 3, .bias = false, .trainable = false});
}

TEST_CASE("extents of a transposed convolution's result decide its pads") {
  const auto row = [](std::vector<Attribute> attributes) {
    attributes.emplace_back("strides", Extents{2});
    const OnnxModel model = read(of_nodes({node("ConvTranspose", {"x", "w"}, {"y"}, attributes)}, {1, 1, 3},
                                          {tensor("w", {1, 1, 3}, {1, 10, 100})}));
    return output_of(model);  // all of it: 0 0 1 10 102 20 200
  };
  const auto upper = Attribute("auto_pad", "SAME_UPPER"), lower = Attribute("auto_pad", "SAME_LOWER");
  const auto extent = [](std::int64_t its) { return Attribute("output_shape", Extents{its}); };
  CHECK(row({}) == std::vector<double>{0, 0, 1, 10, 102, 20, 200});
  CHECK(row({{"auto_pad", "VALID"}, {"pads", Extents{1, 1}}}) == row({}));
  CHECK(row({upper}) == std::vector<double>{0, 0, 1, 10, 102, 20});
  CHECK(row({lower}) == std::vector<double>{0, 1, 10, 102, 20, 200});
  CHECK(row({extent(4), upper}) == std::vector<double>{0, 1, 10, 102});
  CHECK(row({extent(4)}) == std::vector<double>{1, 10, 102, 20});
  CHECK(row({extent(8)}) == std::vector<double>{0, 0, 1, 10, 102, 20, 200, 0});
  CHECK_THROWS_AS(row({extent(0)}), FileError);
  CHECK_THROWS_AS(row({{"output_padding", Extents{-1}}}), FileError);
  CHECK_THROWS_AS(row({{"output_shape", Extents{4, 4}}}), FileError);
  // Windows of 1 at every second place reach 5, of which SAME makes 6.
  CHECK_THROWS_WITH(read(of_nodes({node("ConvTranspose", {"x", "w"}, {"y"}, {upper, {"strides", Extents{2}}})},
                                  {1, 1, 3}, {tensor("w", {1, 1, 1}, {1})})),
                    ContainsSubstring("runtimes differ"));
}

TEST_CASE("what reads a transposed convolution finds its result, or says that it cannot") {
  const std::string w = tensor("w", {1, 1, 2}, {1, -1}), k = tensor("k", {1}, {5}), e = tensor("e", {1, 1, 1}, {1});
  const std::string g = tensor("g", {6, 1}, {1, 2, 3, 4, 5, 6});
  const std::string transposed = node("ConvTranspose", {"x", "w"}, {"t"}, {{"strides", Extents{2}}});
  const auto after = [&](std::vector<std::string> nodes) {
    nodes.insert(nodes.begin(), transposed);
    return output_of(read(of_nodes(std::move(nodes), {1, 1, 3}, {w, k, e, g})));
  };
  CHECK(after({node("Add", {"t", "k"}, {"y"})}) == std::vector<double>{5, 5, 6, 4, 7, 3});
  CHECK(after({node("Relu", {"t"}, {"y"})}) == std::vector<double>{0, 0, 1, 0, 2, 0});
  CHECK(after({node("Flatten", {"t"}, {"f"}), node("Gemm", {"f", "g"}, {"y"})}) == std::vector<double>{-3});
  CHECK(after({node("Add", {"t", "t"}, {"y"})}) == std::vector<double>{0, 0, 2, -2, 4, -4});
  CHECK_THROWS_WITH(after({node("Conv", {"t", "e"}, {"y"})}), ContainsSubstring("moves numbers"));
  // A window of 4 fits into the file's extent of 6, not into the 3 of the graph's value.
  CHECK_THROWS_AS(after({node("MaxPool", {"t"}, {"y"}, {{"kernel_shape", Extents{4}}})}), Unsupported);
  CHECK_THROWS_AS(after({node("GlobalAveragePool", {"t"}, {"y"})}), Unsupported);
  CHECK_THROWS_AS(after({node("Concat", {"t", "t"}, {"y"}, {{"axis", std::int64_t{1}}})}), Unsupported);
}

TEST_CASE("a transposed convolution that is invalid, or would be too large as a convolution, is an error") {
  Model groups = model_of(square(2, 2));
  groups.initializers = {tensor("w", {1, 3, 2, 2}, std::vector<float>(12, 1))};
  CHECK_THROWS_AS(read(groups), FileError);
  Transposed cut = square(2, 2, 4);
  CHECK_THROWS_WITH(read(model_of(cut)), ContainsSubstring("leaves nothing"));
  Transposed large = square(3, 2);
  for (Along& a : large.axes) a.input = 64;
  CHECK_THROWS_WITH(read(model_of(large)),
                    ContainsSubstring("no multiple of its strides") && ContainsSubstring("2^24"));
  for (Along& a : large.axes) a.added = 1, a.begin = a.end = 1;
  CHECK(conv_of(read(model_of(large))).channels == 12);
  Transposed far = square(2, 2);
  for (Along& a : far.axes) a.dilation = 1 << 12, a.added = 1;
  CHECK_THROWS_WITH(read(model_of(far), {.most_computed_numbers = 1 << 20}), ContainsSubstring("most_computed"));
  Transposed wide = square(2, std::int64_t{1} << 30);
  for (Along& a : wide.axes) a.added = (1 << 30) - 2;
  CHECK_THROWS_WITH(read(model_of(wide)), ContainsSubstring("no memory can hold"));
}
