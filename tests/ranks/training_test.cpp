// Trainings by several ranks are compared with trainings by one rank with the whole batch. Every rank runs every case,
// and also trains alone for the comparison.

#include "lamina/optimiser.h"
#include "lamina/workloads.h"
#include "lib/backends/common/lowering.h"
#include "tests/io/files.h"
#include "tests/ranks/ranks.h"
#include "tests/support/catch.h"
#include "tests/support/queued_device.h"
#include "tests/support/wrapped_backend.h"
#include "tests/train/networks.h"
#include "tests/train/runs.h"

using namespace lamina::test;

namespace {

constexpr int batch = 8;  // batch size over all ranks

/// The results of a training: the numbers of its plan, and the scores of epochs and batches.
using Ended = std::vector<Values>;

Ended ended(Trainer& trainer, bool validated) {
  Ended end = everything(trainer.plan());
  for (const EpochResult& e : trainer.epochs()) {
    end.push_back({e.training.loss, e.training.accuracy});
    if (validated) end.push_back({e.validation.loss, e.validation.accuracy});
  }
  for (const Score& score : trainer.batch_scores()) end.push_back({score.loss, score.accuracy});
  return end;
}

Ended train(const Graph& graph, const Source& source, const TrainerOptions& options, int epochs) {
  Trainer trainer(graph, oracle(), source, options);
  trainer.train(epochs);
  return ended(trainer, options.validation != nullptr);
}

TrainerOptions in_f64(TrainerOptions options) {
  options.plan.dtype = DType::f64;
  return options;
}

TrainerOptions together(TrainerOptions options) {
  options.communicator = &ranks();
  options.bucket_bytes = 1000;  // small, so that there are several buckets
  return options;
}

using Builder = std::function<Graph(int batch)>;

/// Trains once alone and twice with all ranks, and compares the results.
void compare(const Builder& graph, const Source& source, const TrainerOptions& options, int epochs = 2) {
  const Ended alone = train(graph(batch), source, options, epochs);
  const Graph part = graph(batch / ranks().size());
  const Ended all = train(part, source, together(options), epochs);
  CHECK(largest_difference(alone, all) < 1e-12);
  CHECK((train(part, source, together(options), epochs) == all));
  check_same_bits(all);
}

}  // namespace

TEST_CASE("several ranks train the six workloads like one rank, with dropout and short last batches") {
  for (const Workload& each : workloads()) {
    INFO(each.name);
    const auto prepared = [&](int n) { return prepare(each, {.share = 0.0008, .width_divisor = 16, .batch = n}); };
    const PreparedWorkload whole = prepared(batch);
    compare([&](int n) { return prepared(n).graph; }, *whole.training, in_f64(whole.options), 1);
  }
}

TEST_CASE("several ranks update like one rank, with every optimiser") {
  const auto source = digits(20, 1);
  for (const std::string& name : optimiser_names()) {
    INFO(name);
    const NamedOptimiser its = named_optimiser(name);
    compare([](int n) { return small_network(n); }, *source,
            in_f64({.optimiser = its.optimiser, .learning_rate = constant_rate(its.learning_rate), .seed = 3}));
  }
}

TEST_CASE("several ranks accumulate and clip gradients and validate like one rank with the whole batch") {
  const auto source = digits(44, 1), unseen = digits(21, 2);
  compare([](int n) { return small_network(n); }, *source,
          in_f64({.optimiser = Sgd{.momentum = 0.9},
                  .learning_rate = constant_rate(0.1),
                  .clip_norm = 0.05,
                  .accumulate = 4,
                  .seed = 5,
                  .validation = unseen.get()}));
}

TEST_CASE("shared gradients and statistics are summed over the ranks once, after all uses") {
  const auto source = digits(4 * batch, 1);
  for (const int accumulate : {1, 2}) {
    TrainerOptions options = in_f64({.optimiser = Sgd{.momentum = 0.9}, .accumulate = accumulate, .seed = 6});
    options.synchronised_batch_norm = true;
    compare(shared_network, *source, options);
  }
}

TEST_CASE("synchronised batch norm equals batch norm of the whole batch, with and without an add before its ReLU") {
  const auto source = digits(3 * batch, 1);
  const auto two_norms = [](int n) {
    Graph graph("norms");
    const Value labels = graph.input({n, 1, 1, 1}, "labels");
    Value x = max_pool(graph.input({n, 1, 28, 28}, "images"), "pool", {.window = 4, .stride = 4});
    x = batch_norm(conv(x, "conv1", {.channels = 6, .kernel = 3, .pad = 1, .bias = false}), "bn1");
    const Value shortcut = relu(x);
    x = batch_norm(conv(shortcut, "conv2", {.channels = 6, .kernel = 3, .pad = 1, .bias = false}), "bn2");
    softmax_cross_entropy(fully_connected(relu(add(x, shortcut)), "fc", {.outputs = 10}), labels, "loss");
    return graph;
  };
  for (const int accumulate : {1, 2}) {
    TrainerOptions options = in_f64({.accumulate = accumulate, .seed = 4, .validation = source.get()});
    options.synchronised_batch_norm = true;
    compare(two_norms, *source, options);
  }
}

TEST_CASE("lazy updates of tables equal the updates of one rank with the whole batch") {
  const PreparedWorkload whole =
      prepare(workload("imdb_fasttext"), {.share = 0.0008, .width_divisor = 16, .batch = batch});
  TrainerOptions options = in_f64(whole.options);
  options.plan.table_updates = TableUpdates::lazy;
  compare(
      [&](int n) {
        return prepare(workload("imdb_fasttext"), {.share = 0.0008, .width_divisor = 16, .batch = n}).graph;
      },
      *whole.training, options, 1);
}

TEST_CASE("in half precision all ranks have the same bits, close to the results of one rank") {
  const auto source = digits(5 * batch, 1);
  for (const DType dtype : {DType::f16, DType::bf16}) {
    TrainerOptions options{.optimiser = Sgd{}, .learning_rate = constant_rate(0.1), .seed = 2};
    options.plan.dtype = dtype;
    const Ended alone = train(small_network(batch), *source, options, 1);
    const Ended all = train(small_network(batch / ranks().size()), *source, together(options), 1);
    check_same_bits(all);
    CHECK(largest_difference(alone, all) < unit_roundoff(dtype));  // sums in another order may change a rounding
  }
}

TEST_CASE("a device whose memory cannot be summed is refused when the trainer is made") {
  struct Elsewhere : WrappedBackend {
    using WrappedBackend::WrappedBackend;
    Device& device() override { return gpu; }
    QueuedDevice gpu;
  };
  if (ranks().size() == 1) return;
  Elsewhere backend(oracle());
  const auto source = digits(batch, 1);
  CHECK_THROWS_WITH(Trainer(small_network(batch / ranks().size()), backend, *source, together({})),
                    ContainsSubstring("not of modelled device"));
}

TEST_CASE("one bucket and many buckets have the same results to 1e-6") {
  const auto source = digits(20, 1);
  const auto run = [&](std::size_t bytes) {
    TrainerOptions options = together({.seed = 1});
    options.bucket_bytes = bytes;
    return train(small_network(batch / ranks().size()), *source, options, 1);
  };
  CHECK(largest_difference(run(1), run(std::size_t{1} << 30)) <
        1e-6);  // the order of a sum may depend on the bucket's length
}

TEST_CASE("at the end of an epoch, running statistics become the mean over all ranks") {
  const auto source = digits(3 * batch, 1);
  Device& device = oracle().device();
  const Graph graph = small_network(batch / ranks().size(), true);
  TrainerOptions options = together(in_f64({.optimiser = Sgd{}, .learning_rate = constant_rate(0), .seed = 4}));
  Trainer trainer(graph, oracle(), *source, options);

  Values mean;
  for (int rank = 0; rank < ranks().size(); ++rank) {
    Plan plan(graph, oracle(), {.dtype = DType::f64});
    copy_parameters(trainer.plan(), plan);
    Loader loader(*source, {.batch = batch, .seed = 4, .threads = 0, .rank = rank, .ranks = ranks().size()});
    loader.start(0);
    while (const Batch* part = loader.next()) {
      upload(device, plan.input("images"), std::span<const float>(part->x));
      upload(device, plan.input("labels"), std::span<const float>(part->labels));
      plan.forward();
    }
    Values its = read(plan, plan.state("bn.running_mean"));
    for (const double variance : read(plan, plan.state("bn.running_var"))) its.push_back(variance);
    for (double& value : its) value /= ranks().size();
    mean = mean.empty() ? its : plus(mean, its);
  }
  trainer.train(1);
  Values got = read(device, trainer.plan().state("bn.running_mean"));
  for (const double variance : read(device, trainer.plan().state("bn.running_var"))) got.push_back(variance);
  CHECK(largest_difference({got}, {mean}) < 1e-14);
  check_same_bits(everything(trainer.plan()));
}

TEST_CASE("a resumed training has the same bits with the same number of ranks, else results to rounding") {
  const Folder own;
  const std::filesystem::path folder = broadcast_text(ranks(), own.path().string());
  const auto source = digits(44, 1), unseen = digits(9, 2);
  TrainerOptions options = in_f64({.optimiser = Adam{}, .accumulate = 2, .seed = 7, .validation = unseen.get()});
  options.checkpoint_updates = 1;
  const Graph whole = small_network(batch), part = small_network(batch / ranks().size());
  const Ended straight = train(part, *source, together(options), 2);

  /// Stops after five of the six batches of the second epoch. The checkpoint has four of these batches.
  const auto interrupted = [&](const Graph& graph, TrainerOptions how, const std::filesystem::path& file) {
    how.checkpoint = file;
    how.after_batch = [](const Progress& at) {
      if (at.epoch == 1 && at.batch == 5) throw Interrupted("enough");
    };
    CHECK_THROWS_AS(train(graph, *source, how, 2), Interrupted);
  };
  const auto goes_on = [&](const Graph& graph, TrainerOptions how, const std::filesystem::path& file) {
    how.checkpoint = file;
    return train(graph, *source, how, 2);
  };
  interrupted(part, together(options), folder / "all");
  ranks().barrier();
  std::filesystem::copy_file(folder / "all", own / "alone");  // each rank has its own copy, from which it resumes alone
  ranks().barrier();
  CHECK((goes_on(part, together(options), folder / "all") == straight));
  CHECK(largest_difference(goes_on(whole, options, own / "alone"), straight) < 1e-12);

  if (ranks().rank() == 0) interrupted(whole, options, folder / "one");
  ranks().barrier();
  CHECK(largest_difference(goes_on(part, together(options), folder / "one"), straight) < 1e-12);
}

TEST_CASE("a checkpoint that rank 0 cannot write is an error on every rank, and the run can go on") {
  const Folder own;
  const std::filesystem::path folder = std::filesystem::path(broadcast_text(ranks(), own.path().string())) / "runs";
  if (ranks().rank() == 0) std::filesystem::create_directory(folder);
  ranks().barrier();
  const auto source = digits(16, 1);
  TrainerOptions options = together({.seed = 1});
  options.checkpoint = folder / "run";
  Trainer trainer(small_network(batch / ranks().size()), oracle(), *source, options);
  ranks().barrier();
  if (ranks().rank() == 0) std::filesystem::remove(folder);
  ranks().barrier();
  CHECK_THROWS_AS(trainer.train(1), FileError);
  ranks().barrier();
  if (ranks().rank() == 0) std::filesystem::create_directory(folder);
  ranks().barrier();
  CHECK(trainer.train(2).size() == 2);
  ranks().barrier();
  CHECK(std::filesystem::exists(options.checkpoint));
  ranks().barrier();
}

TEST_CASE("a checkpoint with numbers that are not finite is an error on every rank") {
  const Folder own;
  const auto source = digits(16, 1);
  TrainerOptions options = together({.seed = 1});
  options.checkpoint = std::filesystem::path(broadcast_text(ranks(), own.path().string())) / "run";
  Plan* plan = nullptr;
  options.after_batch = [&](const Progress& at) {  // after the epoch's last batch, so no loss is NaN
    if (at.batch == at.batches) write(*plan, plan->parameter("fc.bias"), Values(10, NAN));
  };
  Trainer trainer(small_network(batch / ranks().size()), oracle(), *source, options);
  plan = &trainer.plan();
  CHECK_THROWS_WITH(trainer.train(1), Catch::Matchers::StartsWith("fc.bias has numbers that are not finite"));
  ranks().barrier();
}

TEST_CASE("ranks whose runs differ are refused before the first pass") {
  if (ranks().size() == 1) return;
  const auto source = digits(16, 1);
  const auto make = [&](const Graph& graph, TrainerOptions options) {
    Trainer(graph, oracle(), *source, together(std::move(options)));
  };
  const bool odd = ranks().rank() == 1;
  const int part = batch / ranks().size();
  const auto names = [](const char* text) { return ContainsSubstring(text); };
  CHECK_THROWS_WITH(make(small_network(part), {.seed = odd ? 2U : 1U}), names("rank 1 seed 2"));
  CHECK_THROWS_WITH(make(small_network(part, odd), {}), names("rank 0 has a network of"));
  CHECK_THROWS_WITH(make(small_network(odd ? 2 * part : part), {}), names("batch"));
  CHECK_THROWS_WITH(make(small_network(part), {.validation = odd ? source.get() : nullptr}),
                    names("16 samples of validation"));
}
