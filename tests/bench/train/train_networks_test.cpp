// Trainings of the zoo's networks and of ONNX files: data, weights and errors.

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>

#include "bench/train/report.h"
#include "lamina/data.h"
#include "lamina/device.h"
#include "lamina/error.h"
#include "lamina/onnx.h"
#include "lamina/plan.h"
#include "lamina/safetensors.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/values.h"
#include "tests/support/onnx_model.h"

using namespace lamina;
using namespace lamina::bench;

namespace {

/// Options of a training on the images of a folder, or on synthetic images if `data` is empty.
TrainOptions training_on(const std::filesystem::path& data, int batch = 0) {
  TrainOptions options;
  options.data = data;
  options.batch = batch;
  options.share = data.empty() ? 0.001 : 1;
  options.optimiser = "sgd";
  return options;
}

/// Trains an ONNX file's network for one epoch. Returns the file of results.
nlohmann::json trained(TrainOptions options, const std::filesystem::path& onnx, double share) {
  const test::Folder folder;
  options.net.onnx = {onnx};
  options.names = {onnx.stem().string()};
  options.share = share;
  options.epochs = 1;
  options.json = folder / "run.json";
  CHECK(train_all(options, make_backend, [](const std::string&) {}) == 0);
  return nlohmann::json::parse(std::ifstream(options.json));
}

void write_pictures(const std::filesystem::path& folder) {
  Glyphs glyphs(Glyphs::cifar10());
  write_cifar10(folder / "data_batch_1.bin", glyphs.draw(70, 1));
  write_cifar10(folder / "test_batch.bin", glyphs.draw(20, 2));
}

void write_digits(const std::filesystem::path& folder) {
  write_mnist(folder, Part::train, Glyphs(Glyphs::mnist()).draw(40, 1));
  write_mnist(folder, Part::test, Glyphs(Glyphs::mnist()).draw(40, 2));
}

}  // namespace

TEST_CASE("a network of the zoo is trained on the images and classes of a folder") {
  const test::Folder folder;
  write_pictures(folder.path());
  TrainOptions narrow = training_on(folder.path(), 16);
  narrow.net.width_divisor = 8;
  const PreparedWorkload ready = prepare_network("resnet18", narrow);
  CHECK(ready.data == "CIFAR-10");
  CHECK_FALSE(ready.synthetic);
  CHECK(ready.graph.nodes().front().shape == Shape{16, 3, 32, 32});
  CHECK(samples_of(ready) == 64);  // complete batches only
  const auto backend = make_backend("eigen");
  Trainer trainer(ready.graph, *backend, *ready.training, ready.options);
  const EpochResult epoch = trainer.train(1).back();
  CHECK(epoch.training.loss > 0);
  CHECK(epoch.validation.loss > 0);

  CHECK_THROWS_AS(prepare_network("vgg16", training_on(folder / "none")), FileError);
  CHECK_THROWS_AS(prepare_network("alexnet", training_on(folder.path())), ShapeError);  // 32 rows are too few
  CHECK(test::said_by<UsageError>([&] { prepare_network("unet", narrow); }) ==
        "unet makes 1x10x32x32 of each image; a training takes one row of two or more logits");

  const test::Folder digits;
  write_digits(digits.path());
  CHECK_THROWS_AS(prepare_network("resnet18", training_on(digits.path())), UsageError);  // the images have one channel
  CHECK(prepare_network("mnist_cnn", training_on(digits.path())).graph.nodes().front().shape == Shape{32, 1, 28, 28});
}

TEST_CASE("an ONNX file's network is trained further from its weights, on synthetic images and on a folder") {
  const test::Folder folder;
  Graph graph("small");
  const Value x = graph.input({1, 3, 32, 32}, "x");
  softmax(fully_connected(relu(conv(x, "conv", {.channels = 4, .kernel = 3, .stride = 2})), "fc", {.outputs = 10}));
  const auto backend = make_backend("eigen");
  Plan plan(graph, *backend);
  const auto file = folder / "small.onnx";
  write_onnx(file, graph, save_weights(plan));

  TrainOptions options;
  options.batch = 20;
  options.optimiser = "sgd";
  options.learning_rate = 1e-9;  // the weights stay the file's weights
  options.checkpoint = folder / "run.safetensors";
  const auto run = trained(options, file, 0.004);
  CHECK(run["benchmarks"][0]["samples"] == 200);
  CHECK(run["benchmarks"][0]["label"] == "synthetic glyphs");
  CHECK(run["trainings"][0]["name"] ==
        "train/small/epoch/eigen/f32/nchw/batch:20/synthetic:0.004/optimiser:sgd/learning_rate:1e-09");
  CHECK(run["benchmarks"][0]["key"]["differs"]["optimiser"] == "sgd");
  CHECK(run["benchmarks"][0]["key"]["differs"]["learning_rate"] == "1e-09");
  CHECK(run["trainings"][0]["onnx"] == file.string());
  const TensorFile before = save_weights(plan), after = read_safetensors(options.checkpoint);
  for (const auto& [name, tensor] : before) {
    CAPTURE(name);
    const auto found = after.find(name);
    REQUIRE(found != after.end());
    double most = 0;
    for (std::size_t i = 0; i < tensor.values.size(); ++i)
      most = test::larger(most, std::abs(tensor.values[i] - found->second.values[i]));
    CHECK(most < 1e-7);
  }

  write_pictures(folder.path());
  const PreparedFile ready = prepare_file(file, training_on(folder.path(), 16));
  CHECK(ready.training.data == "CIFAR-10");
  CHECK(ready.training.graph.nodes().front().shape == Shape{16, 3, 32, 32});
  CHECK(ready.training.graph.find("softmax") < 0);
  Trainer trainer(ready.training.graph, *backend, *ready.training.training, ready.training.options);
  load_weights(trainer.plan(), ready.weights);
  const double first = trainer.train(1).front().training.loss;
  CHECK(trainer.train(5).back().training.loss < first);

  const test::Folder digits;
  write_digits(digits.path());
  CHECK_THROWS_AS(prepare_file(file, training_on(digits.path())), UsageError);  // the images have one channel
  CHECK_THROWS_AS(prepare_file(folder / "none.onnx", {}), FileError);
  Graph pixels("pixels");
  conv(pixels.input({1, 3, 32, 32}, "x"), "conv", {.channels = 4, .kernel = 3});
  Plan of_pixels(pixels, *backend);
  write_onnx(folder / "pixels.onnx", pixels, save_weights(of_pixels));
  CHECK_THROWS_AS(prepare_file(folder / "pixels.onnx", {}), UsageError);  // a row of logits for each pixel
}

TEST_CASE("an ONNX file that was exported for training has batch statistics and dropout in training") {
  const test::Folder folder;
  test::write(folder / "model.onnx", test::bytes_of(R"(
    x[n,3,32,32] one[3] = all 1; zero[3] = all 0; half[] = 0.5; yes = {1}; w[3,2] = 1, -1, 1, 1, -1, 1
    n, mean, var = BatchNormalization<training_mode=1>(x, one, zero, zero, one) p = GlobalAveragePool(n) f = Flatten(p)
    d = Dropout(f, half, yes) y = Gemm(d, w) return y, d)"));
  TrainOptions synthetic = training_on({}, 16);
  CHECK_THROWS_AS(prepare_file(folder / "model.onnx", synthetic), UsageError);  // two outputs
  synthetic.net.onnx_settings.output = "y";
  const PreparedFile ready = prepare_file(folder / "model.onnx", synthetic);
  CHECK(ready.training.graph.node("n").op == Op(BatchNorm{}));
  CHECK(ready.training.graph.node("d").op == Op(Dropout{.rate = 0.5}));
  const auto backend = make_backend("eigen");
  Trainer trainer(ready.training.graph, *backend, *ready.training.training, ready.training.options);
  load_weights(trainer.plan(), ready.weights);
  CHECK(trainer.train(1).back().training.loss > 0);
  std::vector<double> mean(3);
  download(backend->device(), std::span<double>(mean), trainer.plan().state("n.running_mean"));
  CHECK(mean != std::vector<double>{0, 0, 0});

  TrainOptions options;
  options.net.onnx_settings.output = "y";
  const auto run = trained(options, folder / "model.onnx", 0.001);
  CHECK(run["trainings"][0]["name"] == "train/model/epoch/eigen/f32/nchw/batch:32/onnx_output:y/synthetic:0.001");
}

TEST_CASE("an ONNX file that has the name of a workload is trained in place of the workload") {
  const test::Folder folder;
  Graph graph("small");
  const Value x = graph.input({1, 3, 32, 32}, "x");
  fully_connected(conv(x, "conv", {.channels = 2, .kernel = 3, .stride = 4}), "fc", {.outputs = 10});
  const auto backend = make_backend("eigen");
  Plan plan(graph, *backend);
  write_onnx(folder / "mnist_mlp.onnx", graph, save_weights(plan));
  const auto run = trained({}, folder / "mnist_mlp.onnx", 0.002);
  CHECK(!run["benchmarks"][0]["key"]["differs"].contains("optimiser"));
  CHECK(run["trainings"][0]["parameters"] == graph.parameter_count());
}
