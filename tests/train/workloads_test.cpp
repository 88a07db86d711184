// The six workloads: their published sizes, data and training, and the initial values of an LSTM.

#include "lamina/workloads.h"

#include "lamina/data.h"
#include "lamina/weights.h"
#include "tests/io/files.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"
#include "tests/support/numbers/values.h"

using namespace lamina::test;

TEST_CASE("the workloads' networks have the published numbers of parameters") {
  const auto parameters = [](const char* name) {
    return prepare(workload(name), {.share = 0.001}).graph.parameter_count();
  };
  CHECK(parameters("mnist_mlp") == 669706);
  CHECK(parameters("mnist_cnn") == 1199882);
  CHECK(parameters("cifar10_cnn") == 1250858);
  // Synthetic sets have only 500 ids and 8 characters.
  CHECK(parameters("imdb_fasttext") == 50 * 500 + 51);
  CHECK(parameters("imdb_bilstm") == 2658945 - (20000 - 500) * 128);
  CHECK(parameters("lstm_text") == 102585 - (57 - 8) * (4 * 128 + 128 + 1));
}

TEST_CASE("a workload on real files takes its vocabulary and its samples from the files") {
  const Folder folder;
  IdSet set;
  set.vocabulary = 20000;
  for (std::uint32_t i = 0; i < 40; ++i) set.append(std::vector<std::uint32_t>{1, i + 4, 19999}, i % 2);
  write_ids(folder / "imdb-train.ids", set);
  write_ids(folder / "imdb-test.ids", set);
  CHECK_THROWS_WITH(prepare(workload("imdb_fasttext"), {.data = folder.path()}), ContainsSubstring("--bigrams"));
  set.vocabulary = 30000;
  write_ids(folder / "imdb-bigrams-train.ids", set);
  write_ids(folder / "imdb-bigrams-test.ids", set);
  CHECK(prepare(workload("imdb_fasttext"), {.data = folder.path()}).graph.parameter_count() == 50 * 30000 + 51);
  const PreparedWorkload ready = prepare(workload("imdb_bilstm"), {.data = folder.path()});
  CHECK(ready.graph.parameter_count() == 2658945);
  CHECK(ready.data == "IMDB");
  CHECK(!ready.synthetic);
  CHECK(!ready.optimum);
  CHECK(ready.training->count() == 40);
  CHECK_THROWS_AS(prepare(workload("mnist_mlp"), {.data = folder.path()}), FileError);
  CHECK_THROWS_AS(prepare(workload("imdb_bilstm"), {.data = folder.path(), .share = 0.5}), UsageError);
  CHECK_THROWS_AS(prepare(workload("imdb_bilstm"), {.data = folder.path(), .share = 2}), UsageError);
  CHECK_THROWS_AS(prepare(workload("mnist_mlp"), {.share = 0}), UsageError);
  CHECK_THROWS_AS(prepare(workload("mnist_mlp"), {.share = 16.5}), UsageError);
  CHECK_THROWS_AS(workload("mnist_mlq"), UsageError);
}

TEST_CASE("a share above 1 gives more samples for training, but not for validation") {
  const PreparedWorkload ready = prepare(workload("imdb_fasttext"), {.share = 1.5, .width_divisor = 50});
  CHECK(ready.training->count() == 37500);
  CHECK(ready.validation->count() == 25000);
}

TEST_CASE("every workload has the documented optimiser, numbers of batches and augmentation") {
  for (const Workload& each : workloads()) {
    PreparedWorkload ready = prepare(each, {.share = 0.002});
    INFO(each.name);
    CHECK(ready.synthetic);
    CHECK(ready.data.starts_with("synthetic"));
    CHECK(ready.options.optimiser == named_optimiser(each.optimiser).optimiser);
    CHECK(ready.options.learning_rate(0) == each.learning_rate);
    CHECK(ready.options.drop_last == (each.name == "cifar10_cnn"));
    CHECK((ready.validation == nullptr) == (each.name == "lstm_text"));
    CHECK(ready.graph.node("labels").shape.n == each.batch);
  }
}

TEST_CASE("an LSTM has Keras' initial values: orthogonal recurrent weights, and 1 as the forget gate's bias") {
  PreparedWorkload ready = prepare(workload("lstm_text"), {.share = 0.002, .width_divisor = 16});
  Trainer trainer(ready.graph, oracle(), *ready.training, ready.options);
  const Plan& plan = trainer.plan();
  const Values bias = read(oracle().device(), plan.parameter("lstm_1.bias_l0"));
  for (std::size_t i = 0; i < 32; ++i) CHECK(bias[i] == (i / 8 == 1 ? 1 : 0));
  const Values w = read(oracle().device(), plan.parameter("lstm_1.weight_hh_l0"));  // 32 x 8, with orthonormal columns
  for (std::size_t a = 0; a < 8; ++a)
    for (std::size_t b = 0; b < 8; ++b) {
      double product = 0;
      for (std::size_t row = 0; row < 32; ++row) product += w[8 * row + a] * w[8 * row + b];
      CHECK(std::abs(product - (a == b ? 1 : 0)) < 1e-6);
    }
  CHECK(save_weights(plan).at("lstm_1.bias_l0").extents == std::vector<std::int64_t>{32});
}
