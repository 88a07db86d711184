// Trainer: what an epoch does, by hand; interruptions; what it refuses.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "lamina/error.h"
#include "lamina/weights.h"
#include "tests/io/files.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/values.h"
#include "tests/train/backends.h"
#include "tests/train/networks.h"

using namespace lamina;
using namespace lamina::test;

namespace {

/// Everything that a training changes.
std::vector<Values> everything(Plan& plan) {
  Device& device = plan.backend().device();
  std::vector<Values> all;
  for (const std::string& name : plan.parameter_names()) all.push_back(read(device, plan.parameter(name)));
  for (const std::string& name : plan.optimiser_state_names()) all.push_back(read(device, plan.optimiser_state(name)));
  for (const std::string& name : plan.state_names())
    if (const Tensor state = plan.state(name); state.dtype != DType::u64) {
      all.push_back(read(device, state));
    } else {
      std::uint64_t step = 0;
      device.download(&step, state.data, sizeof step);
      all.push_back({static_cast<double>(step)});
    }
  return all;
}

bool same(const EpochResult& a, const EpochResult& b) {
  return a.epoch == b.epoch && a.training.loss == b.training.loss && a.training.accuracy == b.training.accuracy &&
         a.validation.loss == b.validation.loss && a.validation.accuracy == b.validation.accuracy;
}

struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

TEST_CASE("an epoch is its batches by hand: forward, backward, an update, the short last batch with its own mean") {
  for (const std::string& name : training_backends()) {
    const auto backend = make_or_skip(name);
    Device& device = backend->device();
    const auto source = digits(20, 1), unseen = digits(11, 2);
    Trainer trainer(small_network(8), *backend, *source,
                    {.optimiser = KerasAdam{},
                     .learning_rate = inverse_time(0.01, 0.1),
                     .seed = 3,
                     .plan = {.dtype = DType::f64},
                     .validation = unseen.get()});
    Options options;
    options.dtype = DType::f64;
    options.optimiser = KerasAdam{};
    Plan plan(small_network(8), *backend, options);
    // As the trainer starts.
    for (const std::string& p : plan.parameter_names())
      write(device, plan.parameter(p), read(device, trainer.plan().parameter(p)));
    std::uint64_t step = 0;
    device.download(&step, trainer.plan().state("drop.step").data, sizeof step);
    device.upload(plan.state("drop.step").data, &step, sizeof step);
    const double dy[] = {1, 0};

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
        const Values output = read(device, plan.output());
        loss += output[0] * batch->shape.n;
        right += output[1] * batch->shape.n;
        upload(device, plan.output_gradient(), std::span<const double>(dy));
        plan.backward();
        plan.update(0.01 / (1 + 0.1 * static_cast<double>(plan.updates())));
      }
    }
    const auto& results = trainer.train(2);
    INFO(name);
    REQUIRE(results.size() == 2);
    CHECK(everything(trainer.plan()) == everything(plan));
    CHECK(std::abs(results[1].training.loss - loss / 20) < 1e-14);
    CHECK(std::abs(results[1].training.accuracy - right / 20) < 1e-14);
    CHECK(trainer.batch_scores().size() == 3);

    // Validation: an inference plan of all eleven at once.
    options.mode = Mode::inference;
    options.optimiser.reset();
    Plan inference(small_network(11), *backend, options);
    for (const std::string& p : plan.parameter_names())
      write(device, inference.parameter(p), read(device, plan.parameter(p)));
    inference.parameters_changed();
    Loader all(*unseen, {.batch = 11, .shuffle = false, .threads = 0});
    all.start(0);
    const Batch* batch = all.next();
    upload(device, inference.input("images"), std::span<const float>(batch->x));
    upload(device, inference.input("labels"), std::span<const float>(batch->labels));
    inference.forward();
    const Values output = read(device, inference.output());
    CHECK(std::abs(results[1].validation.loss - output[0]) < 1e-12);
    CHECK(std::abs(results[1].validation.accuracy - output[1]) < 1e-12);
    const Score again = trainer.evaluate(*unseen);
    CHECK(again.loss == results[1].validation.loss);
  }
}

TEST_CASE("batches that are added up are one update with the mean over their samples") {
  const auto backend = make_backend("eigen");
  const auto source = digits(44, 1);
  // 8 + 8 + 8 | 8 + 8 + 4 samples, against batches of 24 and 20 in the same order; no dropout acts at rate 0.
  const auto graph = [](int batch) {
    Graph g("linear");
    const Value images = g.input({batch, 1, 28, 28}, "images"), labels = g.input({batch, 1, 1, 1}, "labels");
    softmax_cross_entropy(fully_connected(images, "fc", {.outputs = 10}), labels);
    return g;
  };
  TrainerOptions options{
      .optimiser = Sgd{.momentum = 0.9}, .learning_rate = constant_rate(0.1), .clip_norm = 2, .seed = 5};
  options.plan.dtype = DType::f64;
  Trainer whole(graph(24), *backend, *source, options);
  options.accumulate = 3;
  Trainer added(graph(8), *backend, *source, options);
  whole.train(2);
  added.train(2);
  CHECK(whole.plan().updates() == 4);
  CHECK(added.plan().updates() == 4);
  const Values a = read(backend->device(), whole.plan().parameter("fc.weight"));
  const Values b = read(backend->device(), added.plan().parameter("fc.weight"));
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::max(worst, std::abs(a[i] - b[i]));
  CHECK(worst < 1e-13);
  CHECK(std::abs(whole.epochs()[1].training.loss - added.epochs()[1].training.loss) < 1e-13);
}

TEST_CASE("a training has the same bits with any number of loader threads, and other seeds give another one") {
  const auto backend = make_backend("eigen");
  const auto source = digits(40, 1);
  const auto run = [&](std::uint64_t seed, int threads) {
    Trainer trainer(small_network(8), *backend, *source, {.seed = seed, .threads = threads});
    trainer.train(2);
    return everything(trainer.plan());
  };
  const auto one = run(1, 0);
  CHECK(run(1, 1) == one);
  CHECK(run(1, 3) == one);
  CHECK(run(2, 1) != one);
}

TEST_CASE("a run that stops anywhere goes on from its checkpoint, and ends with the same bits") {
  for (const std::string& name : training_backends())
    for (const bool with_batch_norm : {false, true}) {
      const auto backend = make_or_skip(name);
      const auto source = digits(40, 1), unseen = digits(10, 2);
      const Folder folder;
      TrainerOptions options{.optimiser = Adam{}, .accumulate = 2, .seed = 9, .validation = unseen.get()};
      Trainer straight(small_network(8, with_batch_norm), *backend, *source, options);
      straight.train(3);

      options.checkpoint = folder.path() / "run.safetensors";
      options.checkpoint_updates = 2;
      int resumed = 0;
      for (int stop : {0, 1, 3, 4, 5, 2, 4, 1, 1000}) {
        options.after_batch = [&](const Progress&) {
          if (stop-- == 0) throw Interrupted("stopped");
        };
        Trainer trainer(small_network(8, with_batch_norm), *backend, *source, options);
        resumed += trainer.resumed() ? 1 : 0;
        try {
          trainer.train(3);
        } catch (const Interrupted&) {
          continue;
        }
        INFO(name);
        CHECK(resumed > 3);
        CHECK(everything(trainer.plan()) == everything(straight.plan()));
        REQUIRE(trainer.epochs().size() == 3);
        for (std::size_t e = 0; e < 3; ++e) CHECK(same(trainer.epochs()[e], straight.epochs()[e]));
      }
      // A run that is complete goes on with nothing to do.
      options.after_batch = nullptr;
      Trainer complete(small_network(8, with_batch_norm), *backend, *source, options);
      CHECK(complete.train(3).size() == 3);
      CHECK(everything(complete.plan()) == everything(straight.plan()));
    }
}

TEST_CASE("a run that stops goes on at the rate of its update, under every schedule") {
  const auto backend = make_backend("eigen");
  const auto source = digits(40, 1);
  const std::pair<const char*, Schedule> schedules[] = {{"constant", constant_rate(1e-2)},
                                                        {"inverse time", inverse_time(1e-2, 0.1)},
                                                        {"steps", step_decay(1e-2, 0.5, 3)},
                                                        {"cosine", cosine(1e-2, 1e-4, 9)},
                                                        {"warm-up", warm_up(4, cosine(1e-2, 1e-4, 9))}};
  std::vector<std::vector<Values>> ends;
  for (const auto& [name, schedule] : schedules) {
    INFO(name);
    const Folder folder;
    TrainerOptions options{.optimiser = Sgd{.momentum = 0.9}, .learning_rate = schedule, .seed = 4};
    Trainer straight(small_network(8), *backend, *source, options);
    straight.train(2);
    options.checkpoint = folder / "run.safetensors";
    options.checkpoint_updates = 1;
    bool done = false;
    for (int trainers = 0; !done; ++trainers) {
      int left = 3;  // updates, before the next one is the last of this trainer
      options.after_batch = [&](const Progress&) {
        if (left-- == 0) throw Interrupted("stopped");
      };
      Trainer trainer(small_network(8), *backend, *source, options);
      CHECK(trainer.resumed() == (trainers > 0));
      try {
        trainer.train(2);
        done = true;
        CHECK(trainers >= 2);
        CHECK(everything(trainer.plan()) == everything(straight.plan()));
      } catch (const Interrupted&) {
      }
    }
    ends.push_back(everything(straight.plan()));
    TrainerOptions other = options;
    other.learning_rate = step_decay(1e-2, 0.5, 4);
    CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, other), UsageError);
  }
  for (std::size_t i = 1; i < ends.size(); ++i) CHECK(ends[i] != ends[i - 1]);
}

TEST_CASE("a trainer goes on after an exception of a callback") {
  const auto backend = make_backend("eigen");
  const auto source = digits(40, 1), unseen = digits(10, 2);
  TrainerOptions options{.validation = unseen.get()};
  Trainer straight(small_network(8), *backend, *source, options);
  straight.train(2);
  int left = 3;
  options.after_batch = [&](const Progress&) {
    if (left-- == 0) throw Interrupted("stopped");
  };
  Trainer trainer(small_network(8), *backend, *source, options);
  CHECK_THROWS_AS(trainer.train(2), Interrupted);
  trainer.train(2);
  CHECK(everything(trainer.plan()) == everything(straight.plan()));
  CHECK(same(trainer.epochs()[0], straight.epochs()[0]));
}

TEST_CASE("without a checkpoint a schedule is asked for the updates of the run only") {
  const auto backend = make_backend("eigen");
  const auto source = digits(16, 1);
  TrainerOptions options;
  options.learning_rate = [](std::uint64_t updates) {
    if (updates >= 2) throw Interrupted("beyond the run");
    return 1e-3;
  };
  Trainer trainer(small_network(8), *backend, *source, options);
  CHECK(trainer.train(1).size() == 1);
  CHECK(trainer.plan().updates() == 2);
  CHECK_THROWS_AS(trainer.train(2), Interrupted);
}

TEST_CASE("after a checkpoint that ended an epoch there are no scores of batches until one is done") {
  const auto backend = make_backend("eigen");
  const auto source = digits(16, 1);
  const Folder folder;
  const TrainerOptions options{.checkpoint = folder / "run.safetensors"};
  Trainer first(small_network(8), *backend, *source, options);
  CHECK(first.batch_scores().empty());
  first.train(1);
  CHECK(first.batch_scores().size() == 2);
  Trainer second(small_network(8), *backend, *source, options);
  CHECK(second.resumed());
  CHECK(second.batch_scores().empty());
  second.train(2);
  REQUIRE(second.batch_scores().size() == 2);
  for (const Score& score : second.batch_scores()) CHECK(score.loss > 0);
}

TEST_CASE("a checkpoint of another run, or a damaged one, is an error, and changes nothing") {
  const auto backend = make_backend("eigen");
  const auto source = digits(16, 1);
  const Folder folder;
  TrainerOptions options{.checkpoint = folder.path() / "run.safetensors"};
  Trainer(small_network(8), *backend, *source, options).train(1);
  TrainerOptions other = options;
  other.optimiser = RmsProp{};
  CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, other), UsageError);
  other = options;
  other.seed = 1;
  CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, other), UsageError);
  CHECK_THROWS_AS(Trainer(small_network(4), *backend, *source, options), UsageError);

  const TensorFile whole = read_safetensors(options.checkpoint);
  for (const auto& [name, tensor] : whole) {
    TensorFile lacking = whole;
    lacking.erase(name);
    write_safetensors(options.checkpoint, lacking);
    INFO("without " << name);
    CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, options), FileError);
  }
  for (const char* name : {"trainer/counters", "trainer/steps/drop.step", "trainer/optimiser/fc.weight.mean"}) {
    TensorFile shorter = whole;
    shorter[name] = {DType::f64, {1}, {0.5}};
    write_safetensors(options.checkpoint, shorter);
    INFO("wrong " << name);
    CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, options), FileError);
  }
  std::ofstream(options.checkpoint) << "no tensors";
  CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, options), FileError);
}

TEST_CASE("a checkpoint of as many samples of other data is of another run") {
  const auto backend = make_backend("eigen");
  const Folder folder;
  const TrainerOptions options{.checkpoint = folder / "run.safetensors"};
  const auto source = [](std::uint64_t seed, const ImageOptions& how = {}) {
    return image_source(Glyphs(Glyphs::mnist()).draw(16, seed), how);
  };
  const auto first = source(1);
  Trainer(small_network(8), *backend, *first, options).train(1);
  CHECK(Trainer(small_network(8), *backend, *source(1), options).resumed());
  for (const auto& other : {source(2), source(1, {.scale = 1}), source(1, {.flip = true})})
    CHECK_THROWS_AS(Trainer(small_network(8), *backend, *other, options), UsageError);
  const auto one = digits(1, 1);
  const TrainerOptions of_one{.checkpoint = folder / "one.safetensors"};
  Trainer(small_network(1), *backend, *one, of_one).train(1);
  CHECK(Trainer(small_network(1), *backend, *one, of_one).resumed());
}

TEST_CASE("a checkpoint in a folder that is not there is an error before the first epoch") {
  const auto backend = make_backend("eigen");
  const auto source = digits(16, 1);
  const Folder folder;
  CHECK_THROWS_AS(Trainer(small_network(8), *backend, *source, {.checkpoint = folder / "none/run.safetensors"}),
                  FileError);
}

TEST_CASE("initialisers are Keras', or those that are named") {
  const auto backend = make_backend("eigen");
  const auto source = digits(8, 1);
  const auto largest = [&](const TrainerOptions& options, const char* parameter) {
    Trainer trainer(small_network(8, true), *backend, *source, options);
    double most = 0;
    for (const double value : read(backend->device(), trainer.plan().parameter(parameter)))
      most = std::max(most, std::abs(value));
    return most;
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

TEST_CASE("what a trainer cannot train is an error") {
  const auto backend = make_backend("eigen");
  const auto source = digits(20, 1);
  const auto refused = [&](const Graph& graph, const TrainerOptions& options = {}) {
    CHECK_THROWS_AS(Trainer(graph, *backend, *source, options), UsageError);
  };
  refused(small_network(8, true));  // batch norm, and 4 samples in the last batch
  CHECK_NOTHROW(Trainer(small_network(8, true), *backend, *source, {.drop_last = true}));
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
  CHECK_NOTHROW(Trainer(with_loss(8, 28, 10), *backend, *source));
  refused(with_loss(8, 27, 10));
  refused(with_loss(8, 28, 9));
}

TEST_CASE("a training learns what can be learned of rendered digits") {
  const auto backend = make_backend("eigen");
  const auto source = digits(2000, 1), unseen = digits(500, 2);
  Trainer trainer(small_network(32), *backend, *source,
                  {.learning_rate = constant_rate(0.003), .seed = 1, .validation = unseen.get()});
  const auto& results = trainer.train(6);
  CHECK(results.front().training.accuracy < results.back().training.accuracy);
  CHECK(results.back().validation.accuracy > 0.5);
  CHECK(results.back().validation.loss < results.front().validation.loss);
}
