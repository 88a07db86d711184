// Saving and loading the weights of plans: PyTorch's names and extents, strict loading, Keras' order of flattening.

#include "lamina/safetensors.h"

#include "files.h"
#include "lamina/device.h"
#include "lamina/graph.h"
#include "tests/support/cases/plans.h"
#include "tests/support/catch.h"
#include "tests/support/wrapped_backend.h"

using namespace lamina::test;

namespace {

using Extents = std::vector<std::int64_t>;

/// A net of several ops with parameters or state: convolutions, batch norm, dropout, fully connected ops.
Graph tiny_net() {
  Graph graph("tiny");
  Value x = graph.input({2, 2, 5, 4});
  x = conv(x, "features.conv1", {.channels = 4, .kernel = 3, .pad = 1, .groups = 2});
  x = batch_norm(x, "features.bn1");
  x = relu(x);
  x = conv(x, "conv2", {.channels = 3, .kernel = 1, .bias = false});
  x = dropout(x, "drop", {.rate = 0.25F});
  x = fully_connected(x, "fc1", {.outputs = 6});
  x = fully_connected(x, "fc2", {.outputs = 2, .bias = false});
  return graph;
}

std::vector<double> output(Plan& plan) {
  plan.forward();
  return read(plan, plan.output());
}

/// The weights of a plan, each changed from its initial value.
TensorFile unlike_initial(const Plan& plan) {
  TensorFile file = save_weights(plan);
  for (auto& [name, host] : file)
    for (std::size_t i = 0; i < host.values.size(); ++i)
      host.values[i] = 0.25 + static_cast<double>((i * 7 + name.size()) % 11) / 16;
  return file;
}

std::string complaint(Plan& plan, const TensorFile& file) {
  return said_by<FileError>([&] { load_weights(plan, file, "net.safetensors"); });
}

}  // namespace

TEST_CASE("saved weights have PyTorch's names and extents") {
  const Plan plan(tiny_net(), oracle());
  const TensorFile file = save_weights(plan);
  std::map<std::string, Extents> extents;
  for (const auto& [name, host] : file) {
    extents[name] = host.extents;
    CHECK(host.dtype == DType::f32);
  }
  CHECK(extents == std::map<std::string, Extents>{{"conv2.weight", {3, 4, 1, 1}},
                                                  {"fc1.bias", {6}},
                                                  {"fc1.weight", {6, 60}},
                                                  {"fc2.weight", {2, 6}},
                                                  {"features.bn1.bias", {4}},
                                                  {"features.bn1.running_mean", {4}},
                                                  {"features.bn1.running_var", {4}},
                                                  {"features.bn1.weight", {4}},
                                                  {"features.conv1.bias", {4}},
                                                  {"features.conv1.weight", {4, 1, 3, 3}}});
}

TEST_CASE("an embedding's table and a weight with one row are matrices in a file") {
  Graph graph("ids");
  Value x = embedding(graph.input({2, 1, 3, 1}), "table", {.vocabulary = 7, .features = 5});
  fully_connected(x, "fc", {.outputs = 1});
  Plan from(graph, oracle(), {.seed = 1}), to(graph, oracle(), {.seed = 2});
  const TensorFile file = save_weights(from);
  CHECK(file.at("table.weight").extents == Extents{7, 5});
  CHECK(file.at("fc.weight").extents == Extents{1, 15});
  const Folder folder;
  write_safetensors(folder / "net", file);
  load_weights(to, read_safetensors(folder / "net"));
  for (const std::string& name : from.parameter_names())
    CHECK(read(from, from.parameter(name)) == read(to, to.parameter(name)));
}

TEST_CASE("weights that are saved to a file and loaded into another plan are unchanged") {
  const DType dtype = GENERATE(DType::f32, DType::f64);
  INFO(to_string(dtype));
  Plan from(tiny_net(), oracle(), {.mode = Mode::inference, .dtype = dtype, .seed = 1});
  Plan to(tiny_net(), oracle(), {.mode = Mode::inference, .dtype = dtype, .seed = 2});
  load_weights(from, unlike_initial(from));

  const Folder folder;
  write_safetensors(folder / "net", save_weights(from));
  load_weights(to, read_safetensors(folder / "net"));
  for (const std::string& name : from.parameter_names()) {
    INFO(name);
    CHECK(read(from, from.parameter(name)) == read(to, to.parameter(name)));
  }
  for (const char* name : {"features.bn1.running_mean", "features.bn1.running_var"}) {
    INFO(name);
    CHECK(read(from, from.state(name)) == read(to, to.state(name)));
  }
}

TEST_CASE("a half-precision file that is loaded into an f32 plan and saved again has the same bytes") {
  const DType half = GENERATE(DType::bf16, DType::f16);
  INFO(to_string(half));
  Plan plan(tiny_net(), oracle(), {.mode = Mode::inference});
  TensorFile given = save_weights(plan);
  int number = 0;  // numbers that f16 and bf16 hold exactly
  for (auto& [name, host] : given) {
    host.dtype = half;
    for (double& value : host.values) {
      ++number;
      value = std::ldexp(number % 3 == 0 ? -1 - number % 128 / 128.0 : 1 + number % 128 / 128.0, number % 25 - 10);
    }
  }
  const Folder folder;
  write_safetensors(folder / "given", given);
  load_weights(plan, read_safetensors(folder / "given"));
  TensorFile back = save_weights(plan);
  for (auto& [name, host] : back) {
    CHECK(host.dtype == DType::f32);
    CHECK(host.values == given.at(name).values);
    host.dtype = half;
  }
  write_safetensors(folder / "back", back);
  CHECK(contents(folder / "back") == contents(folder / "given"));

  back.at("fc1.weight").values[3] = 0x1p128;  // above the largest number of f16, bf16 and f32
  CHECK_THROWS_WITH(write_safetensors(folder / "back", back), ContainsSubstring("'fc1.weight'"));
}

TEST_CASE("loading weights prepares parameters again") {
  WrappedBackend wrapped(oracle());
  wrapped.prepare = true;
  Plan plan(tiny_net(), wrapped, {.mode = Mode::inference, .dtype = DType::f64});
  const std::vector<double> before = output(plan);
  const int prepared = wrapped.prepared;
  load_weights(plan, unlike_initial(plan));
  CHECK(wrapped.prepared == 2 * prepared);
  CHECK(output(plan) != before);
  CHECK(wrapped.faults.empty());
}

TEST_CASE("PyTorch's batch counters and a dropout's step are not weights") {
  Plan plan(tiny_net(), oracle());
  TensorFile file = save_weights(plan);
  CHECK_FALSE(file.contains("drop.step"));
  file["features.bn1.num_batches_tracked"] = {.dtype = DType::f32, .extents = {}, .values = {3}};
  CHECK_NOTHROW(load_weights(plan, file));
  file["drop.step"] = {.dtype = DType::f32, .extents = {1}, .values = {3}};
  CHECK_THAT(complaint(plan, file), ContainsSubstring("'drop.step' belongs to nothing in the plan of 'tiny'"));
}

TEST_CASE("a tensor that is missing, unknown or of a wrong shape is named, and the plan is unchanged") {
  Plan plan(tiny_net(), oracle(), {.dtype = DType::f32});
  const TensorFile initial = save_weights(plan);
  const TensorFile good = unlike_initial(plan);
  const auto refused = [&](const TensorFile& file, const std::string& says) {
    INFO(says);
    CHECK_THAT(complaint(plan, file), ContainsSubstring("net.safetensors: ") && ContainsSubstring(says));
    for (const auto& [name, host] : save_weights(plan)) REQUIRE(host.values == initial.at(name).values);
  };
  const auto with = [&](const std::string& name, const HostTensor& host) {
    TensorFile file = good;
    file[name] = host;
    return file;
  };
  TensorFile missing = good;
  missing.erase("fc1.bias");
  refused(missing, "'fc1.bias' is missing");
  refused(with("fc3.weight", {.extents = {1}, .values = {1}}), "'fc3.weight' belongs to nothing");
  refused(with("conv2", {.extents = {1}, .values = {1}}), "'conv2' belongs to nothing");
  refused(with("fc1.weight", {.extents = {60, 6}, .values = std::vector<double>(360)}),
          "'fc1.weight' is 60x6 in the file and 6x3x5x4 in the plan");
  refused(with("fc1.bias", {.extents = {6, 1, 1, 1}, .values = std::vector<double>(6)}), "'fc1.bias' is 6x1x1x1");
  refused(with("conv2.weight", {.extents = {12}, .values = std::vector<double>(12)}), "'conv2.weight' is 12 in");
  refused(with("conv2.weight", {.extents = {}, .values = {1}}), "'conv2.weight' is a scalar");
  refused(with("fc1.bias", {.extents = {6}, .values = {1}}), "'fc1.bias' has 1 values for 6");
  refused(with("fc1.bias", {.dtype = DType::f64, .extents = {6}, .values = {0, 0, 0, 0, 1e39, 0}}), "f32");
  refused({}, "; and 6 more");
}

TEST_CASE("extents of 1 may be left out, and matrices flatten c, h, w") {
  Plan plan(tiny_net(), oracle(), {.dtype = DType::f64});
  TensorFile file = unlike_initial(plan);
  file["fc1.weight"].extents = {6, 3, 5, 4};
  file["conv2.weight"].extents = {3, 4};
  file["fc1.bias"].extents = {1, 6, 1, 1};
  file["features.bn1.weight"].extents = {1, 4};
  REQUIRE_NOTHROW(load_weights(plan, file));
  for (const auto& [name, host] : save_weights(plan)) CHECK(host.values == file.at(name).values);
}

TEST_CASE("weights in Keras' order of flattening are reordered to ours") {
  // Weights of two outputs of an image of 2 channels, 1 row and 3 columns. The number c.w is the weight of channel c,
  // column w.
  const HostTensor keras{
      .dtype = DType::f32, .extents = {2, 6}, .values = {0.0, 1.0, 0.1, 1.1, 0.2, 1.2, 5.0, 6.0, 5.1, 6.1, 5.2, 6.2}};
  const HostTensor ours = hwc_to_chw(keras, {1, 2, 1, 3});
  CHECK(ours.dtype == DType::f32);
  CHECK(ours.extents == Extents{2, 6});
  CHECK(ours.values == std::vector<double>{0.0, 0.1, 0.2, 1.0, 1.1, 1.2, 5.0, 5.1, 5.2, 6.0, 6.1, 6.2});

  CHECK_THROWS_MATCHES(hwc_to_chw(keras, {1, 2, 2, 2}), UsageError, Says("2x6", "2x2x2", "8 columns"));
  CHECK_THROWS_AS(hwc_to_chw({.extents = {6}, .values = std::vector<double>(6)}, {1, 6, 1, 1}), UsageError);
  CHECK_THROWS_AS(hwc_to_chw({.extents = {3, 6}, .values = std::vector<double>(6)}, {1, 6, 1, 1}), UsageError);
}

TEST_CASE("a layer with weights from Keras' order gives Keras' result") {
  Graph graph("dense");
  fully_connected(graph.input({1, 3, 2, 2}), "fc", {.outputs = 2, .bias = false});
  Plan plan(graph, oracle(), {.dtype = DType::f64});
  HostTensor keras{.dtype = DType::f64, .extents = {2, 12}, .values = {}};
  std::vector<double> image(12);  // in Keras' order, channels last
  for (int i = 0; i < 24; ++i) keras.values.push_back(i * i % 17 - 8);
  for (int i = 0; i < 12; ++i) image[static_cast<std::size_t>(i)] = i * 5 % 7 - 3;
  std::vector<double> y(2), x(12);
  for (std::size_t i = 0; i < 24; ++i) y[i / 12] += keras.values[i] * image[i % 12];
  for (std::size_t i = 0; i < 12; ++i) x[i % 3 * 4 + i / 3] = image[i];

  load_weights(plan, {{"fc.weight", hwc_to_chw(keras, {1, 3, 2, 2})}});
  upload(oracle().device(), plan.input(), std::span<const double>(x));
  CHECK(output(plan) == y);
}

TEST_CASE("a shared parameter is saved once, and loaded by any of its names, or by several names if equal") {
  Graph graph("shared");
  Value x = graph.input({2, 3, 4, 4});
  for (const char* name : {"a", "b"})
    x = batch_norm(conv(x, name, {.channels = 3, .kernel = 1}), name + std::string("n"));
  graph.share_all("b", "a");
  graph.share_all("bn", "an");
  Plan plan(graph, oracle()), other(graph, oracle());
  TensorFile file = unlike_initial(plan);
  std::vector<std::string> names;
  for (const auto& [name, host] : file) names.push_back(name);
  CHECK(names ==
        std::vector<std::string>{"a.bias", "a.weight", "an.bias", "an.running_mean", "an.running_var", "an.weight"});
  file["b.weight"] = file["a.weight"];  // PyTorch's state_dict has both names
  file["bn.running_var"] = file["an.running_var"];
  file["b.bias"] = file["a.bias"];
  file.erase("a.bias");
  load_weights(other, file);
  CHECK(read(other, other.parameter("a.bias")) == file["b.bias"].values);
  CHECK(read(other, other.parameter("b.weight")) == file["a.weight"].values);
  file["b.weight"].values[3] += 1;
  CHECK_THROWS_WITH(load_weights(plan, file, "f"), ContainsSubstring("'b.weight' has other numbers than 'a.weight'"));
  file.erase("b.weight");
  file.erase("b.bias");
  CHECK_THROWS_WITH(load_weights(plan, file, "f"), ContainsSubstring("'a.bias' is missing"));
}

TEST_CASE("slopes and scales of channels are vectors in a file, as in PyTorch's PReLU") {
  Graph graph("slopes");
  const Value x = prelu(graph.input({1, 3, 2, 2}), "prelu", {.by_channel = true});
  scale_shift(x, "scaled", {.by_channel = true, .learned = true});
  const TensorFile file = save_weights(Plan(graph, oracle()));
  for (const char* name : {"prelu.weight", "scaled.scale", "scaled.shift"}) CHECK(file.at(name).extents == Extents{3});
}

TEST_CASE("a scale whose shift is fixed may be named as its node in a file, like PyTorch's layer scale") {
  Graph graph("scaled");
  scale_shift(graph.input({1, 2, 1, 1}), "block.layer_scale", {.learned = true});
  const TensorFile file = {{"block.layer_scale", {.extents = {2, 1, 1}, .values = {3, 4}}}};
  Plan both(graph, oracle());
  CHECK(complaint(both, file).find("'block.layer_scale.scale' is missing") != std::string::npos);

  graph.fix("block.layer_scale.shift");
  Plan plan(graph, oracle());
  const TensorFile own = {{"block.layer_scale.scale", {.extents = {2}, .values = {5, 6}}},
                          {"block.layer_scale.shift", {.extents = {2}, .values = {7, 8}}}};
  load_weights(plan, own);
  load_weights(plan, file);
  CHECK(read(plan, plan.parameter("block.layer_scale.scale")) == std::vector<double>{3, 4});
  CHECK(read(plan, plan.state("block.layer_scale.shift")) == std::vector<double>{7, 8});

  TensorFile lacking = own;
  lacking.erase("block.layer_scale.shift");
  CHECK(complaint(plan, lacking).find("'block.layer_scale.shift' is missing") != std::string::npos);
}
