// Trainer: an epoch by hand, initialisers, refusals.

#include "lamina/train.h"

#include "tests/io/files.h"
#include "tests/support/catch.h"
#include "tests/train/networks.h"
#include "tests/train/runs.h"

using namespace lamina::test;

TEST_CASE("an epoch is forward, backward and update of each batch, and a short last batch has its own mean") {
  for (const auto& backend : tested_backends()) {
    Device& device = backend->device();
    const auto source = digits(20, 1), unseen = digits(11, 2);
    Trainer trainer(small_network(8), *backend, *source,
                    {.optimiser = KerasAdam{},
                     .learning_rate = inverse_time(0.01, 0.1),
                     .seed = 3,
                     .plan = {.dtype = DType::f64},
                     .validation = unseen.get()});
    Options options{.dtype = DType::f64, .optimiser = KerasAdam{}};
    Plan plan(small_network(8), *backend, options);
    // The plan gets the trainer's initial numbers.
    copy_parameters(trainer.plan(), plan);
    std::uint64_t step = 0;
    device.download(&step, trainer.plan().state("drop.step").data, sizeof step);
    device.upload(plan.state("drop.step").data, &step, sizeof step);

    Loader loader(*source, {.batch = 8, .seed = 3, .threads = 0});
    double loss = 0, right = 0;
    for (std::uint64_t epoch = 0; epoch < 2; ++epoch) {
      loss = right = 0;
      loader.start(epoch);
      while (const Batch* batch = loader.next()) {
        std::vector<float> x = batch->x, labels = batch->labels;
        x.resize(8 * 784, 0);
        labels.resize(8, -1);
        upload(device, plan.input("images"), std::span<const float>(x));
        upload(device, plan.input("labels"), std::span<const float>(labels));
        plan.forward();
        const Values output = read(plan, plan.output());
        loss += output[0] * batch->shape.n;
        right += output[1] * batch->shape.n;
        write(plan, plan.output_gradient(), {1, 0});
        plan.backward();
        plan.update(0.01 / (1 + 0.1 * static_cast<double>(plan.updates())));
      }
    }
    const auto& results = trainer.train(2);
    INFO(backend->describe());
    REQUIRE(results.size() == 2);
    CHECK(everything(trainer.plan()) == everything(plan));
    CHECK(std::abs(results[1].training.loss - loss / 20) < 1e-14);
    CHECK(std::abs(results[1].training.accuracy - right / 20) < 1e-14);
    CHECK(trainer.batch_scores().size() == 3);

    // The expected validation: an inference plan with all eleven samples at once.
    options.mode = Mode::inference;
    options.optimiser.reset();
    Plan inference(small_network(11), *backend, options);
    copy_parameters(plan, inference);
    inference.parameters_changed();
    Loader all(*unseen, {.batch = 11, .shuffle = false, .threads = 0});
    all.start(0);
    const Batch* batch = all.next();
    upload(device, inference.input("images"), std::span<const float>(batch->x));
    upload(device, inference.input("labels"), std::span<const float>(batch->labels));
    inference.forward();
    const Values output = read(inference, inference.output());
    CHECK(std::abs(results[1].validation.loss - output[0]) < 1e-12);
    CHECK(std::abs(results[1].validation.accuracy - output[1]) < 1e-12);
    const Score again = trainer.evaluate(*unseen);
    CHECK(again.loss == results[1].validation.loss);
  }
}

TEST_CASE("accumulated batches give one update with the mean over their samples") {
  const auto source = digits(44, 1);
  // Accumulated batches of 8 + 8 + 8 and 8 + 8 + 4 samples are compared with batches of 24 and 20 in the same order.
  // Dropout has rate 0.
  const auto graph = [](int batch) {
    Graph g("linear");
    const Value images = g.input({batch, 1, 28, 28}, "images"), labels = g.input({batch, 1, 1, 1}, "labels");
    softmax_cross_entropy(fully_connected(images, "fc", {.outputs = 10}), labels);
    return g;
  };
  TrainerOptions options{.optimiser = Sgd{.momentum = 0.9},
                         .learning_rate = constant_rate(0.1),
                         .clip_norm = 2,
                         .seed = 5,
                         .plan = {.dtype = DType::f64}};
  Trainer whole(graph(24), oracle(), *source, options);
  options.accumulate = 3;
  Trainer added(graph(8), oracle(), *source, options);
  whole.train(2);
  added.train(2);
  CHECK(whole.plan().updates() == 4);
  CHECK(added.plan().updates() == 4);
  const Values a = read(oracle().device(), whole.plan().parameter("fc.weight"));
  const Values b = read(oracle().device(), added.plan().parameter("fc.weight"));
  CHECK(largest_gap(a, b) < 1e-13);
  CHECK(std::abs(whole.epochs()[1].training.loss - added.epochs()[1].training.loss) < 1e-13);
}

TEST_CASE("a training has the same bits with any number of loader threads, and other results with another seed") {
  const auto source = digits(40, 1);
  const auto run = [&](std::uint64_t seed, int threads) {
    Trainer trainer(small_network(8), oracle(), *source, {.seed = seed, .threads = threads});
    trainer.train(2);
    return everything(trainer.plan());
  };
  const auto one = run(1, 0);
  CHECK(run(1, 1) == one);
  CHECK(run(1, 3) == one);
  CHECK(run(2, 1) != one);
}

TEST_CASE("without a checkpoint a schedule is called only for the updates of this run") {
  const auto source = digits(16, 1);
  const auto rate = [](std::uint64_t updates) {
    if (updates >= 2) throw Interrupted("beyond the run");
    return 1e-3;
  };
  Trainer trainer(small_network(8), oracle(), *source, {.learning_rate = rate});
  CHECK(trainer.train(1).size() == 1);
  CHECK(trainer.plan().updates() == 2);
  CHECK_THROWS_AS(trainer.train(2), Interrupted);
}

TEST_CASE("after a validation loss of NaN the next validation is correct again") {
  for (const auto& backend : tested_backends()) {
    const auto source = digits(16, 1), unseen = digits(10, 2);
    Plan* plan = nullptr;
    Values sound;
    TrainerOptions options{.validation = unseen.get()};
    options.after_batch = [&](const Progress& at) {
      if (at.epoch > 0 || at.batch < at.batches) return;
      sound = read(*plan, plan->parameter("fc.bias"));
      write(*plan, plan->parameter("fc.bias"), Values(sound.size(), std::numeric_limits<double>::quiet_NaN()));
    };
    options.after_epoch = [&](const EpochResult& e) {
      if (e.epoch == 0) write(*plan, plan->parameter("fc.bias"), sound);
    };
    Trainer trainer(small_network(8), *backend, *source, options);
    plan = &trainer.plan();
    const auto& epochs = trainer.train(2);
    INFO(backend->describe());
    CHECK(std::isnan(epochs[0].validation.loss));
    CHECK(epochs[0].validation.accuracy == 0);
    CHECK(std::isfinite(epochs[1].validation.loss));
  }
}

TEST_CASE("a loss or parameter that is not finite ends the training, and the earlier checkpoint is kept") {
  const auto source = digits(24, 1);
  for (const std::int64_t after : {1, 3}) {  // 3 is the epoch's last batch
    const Folder own;
    TrainerOptions options{.checkpoint = own / "run"};
    Trainer first(small_network(8), oracle(), *source, options);
    first.train(1);
    Plan* plan = nullptr;
    options.after_batch = [&](const Progress& at) {
      if (at.epoch == 1 && at.batch == after) write(*plan, plan->parameter("fc.bias"), Values(10, NAN));
    };
    Trainer second(small_network(8), oracle(), *source, options);
    plan = &second.plan();
    std::string said;
    try {
      second.train(2);
    } catch (const UsageError&) {
      FAIL_CHECK("a usage error");
    } catch (const Error& error) {
      said = error.what();
    }
    CHECK_THAT(said, Catch::Matchers::StartsWith(after == 1 ? "the loss of batch 2 of epoch 2 is nan;"
                                                            : "fc.bias has numbers that are not"));
    options.after_batch = {};
    Trainer third(small_network(8), oracle(), *source, options);
    CHECK(third.epochs().size() == 1);
    CHECK(everything(third.plan()) == everything(first.plan()));
  }
}

TEST_CASE("a moved-from trainer's errors say so, and the new trainer goes on") {
  const auto source = digits(16, 1);
  Trainer first(small_network(8), oracle(), *source);
  first.train(1);
  Trainer second = std::move(first);
  CHECK_THROWS_AS(first.train(2), UsageError);
  CHECK_THROWS_AS(first.epochs(), UsageError);
  CHECK_THROWS_AS(first.resumed(), UsageError);
  CHECK_THROWS_AS(first.evaluate(*source), UsageError);
  CHECK_THROWS_AS(first.batch_scores(), UsageError);
  CHECK_THROWS_AS(first.plan(), UsageError);
  CHECK(second.train(2).size() == 2);
  first = std::move(second);
  CHECK(first.train(3).size() == 3);
}

TEST_CASE("parameters have Keras' initialisers unless others are named") {
  const auto source = digits(8, 1);
  const auto largest = [&](const TrainerOptions& options, const char* parameter) {
    Trainer trainer(small_network(8, true), oracle(), *source, options);
    return largest_of(read(trainer.plan(), trainer.plan().parameter(parameter)));
  };
  const double limit = std::sqrt(6.0 / (9 * 1 + 9 * 6));
  CHECK(largest({}, "conv.weight") <= limit);
  CHECK(largest({}, "conv.weight") > 0.9 * limit);
  CHECK(largest({}, "fc.bias") == 0);
  CHECK(largest({}, "bn.weight") == 1);
  CHECK(largest({.initialiser = "ones"}, "conv.weight") == 1);
  CHECK(largest({.initialiser_of = {{"fc.weight", "uniform"}}}, "fc.weight") <= 0.05);
  CHECK_THROWS_AS(largest({.initialiser = "one"}, "conv.weight"), UsageError);
  CHECK_THROWS_AS(largest({.initialiser_of = {{"fc.weights", "ones"}}}, "conv.weight"), UsageError);
}

TEST_CASE("a scale whose shift is fixed is initially ConvNeXt's layer scale, and a PReLU's slope 1/4") {
  Graph graph("scaled");
  const Value labels = graph.input({8, 1, 1, 1}, "labels");
  const Value x = scale_shift(graph.input({8, 1, 28, 28}, "images"), "scale", {.learned = true});
  graph.fix("scale.shift");
  softmax_cross_entropy(fully_connected(prelu(x, "prelu"), "fc", {.outputs = 10}), labels, "loss");
  const auto source = digits(8, 1);
  Trainer trainer(std::move(graph), oracle(), *source, {});
  CHECK(read(oracle().device(), trainer.plan().parameter("scale.scale")).front() == 1e-6F);
  CHECK(read(oracle().device(), trainer.plan().state("scale.shift")).front() == 0);
  CHECK(read(oracle().device(), trainer.plan().parameter("prelu.weight")).front() == 0.25);
}

TEST_CASE("graphs and options that a trainer cannot train are errors") {
  const auto source = digits(20, 1);
  const auto refused = [&](const Graph& graph, const TrainerOptions& options = {}) {
    CHECK_THROWS_AS(Trainer(graph, oracle(), *source, options), UsageError);
  };
  refused(small_network(8, true));  // there is a batch norm, and the last batch has 4 samples
  CHECK_NOTHROW(Trainer(small_network(8, true), oracle(), *source, {.drop_last = true}));
  refused(small_network(8), {.accumulate = 0});
  refused(small_network(8), {.learning_rate = nullptr});
  refused(small_network(8), {.checkpoint_updates = -1});
  Graph without_loss("without loss");
  fully_connected(without_loss.input({8, 1, 28, 28}), "fc", {.outputs = 10});
  refused(without_loss);
  const auto with_loss = [&](int images, int side, int outputs) {
    Graph graph("with loss");
    const Value x = graph.input({images, 1, side, side}, "images");
    softmax_cross_entropy(fully_connected(x, "fc", {.outputs = outputs}), graph.input({images, 1, 1, 1}, "labels"));
    return graph;
  };
  CHECK_NOTHROW(Trainer(with_loss(8, 28, 10), oracle(), *source));
  refused(with_loss(8, 27, 10));
  refused(with_loss(8, 28, 9));
}
