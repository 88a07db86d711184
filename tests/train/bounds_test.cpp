// Every workload, narrower than published, learns its synthetic set as well as possible. On new samples, its loss and
// accuracy are within 2 % of the best classifier's.
//
// Most trainings see each sample once, because a network that learns the noise of samples cannot reach the best loss.
// Dropout makes a narrow network too uncertain, so only one case, of the published width, has dropout.
// docs/training.md has the numbers.

#include "lamina/workloads.h"
#include "tests/support/backend.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

/// A small training. Its learning rate falls from `rate` to 0 like a cosine, because the published constant rate needs
/// more steps.
struct Small {
  const char* name;
  double share;
  int width_divisor, batch, epochs;
  double rate;
  bool dropout = false;
  DType dtype = DType::f32;
};

/// New samples of the Markov chain, one at each character, and the chain's own loss on them.
struct NewText {
  std::unique_ptr<Source> source;
  double loss;
};

NewText new_text() {
  const MarkovText chain;
  const std::string text = chain.draw(20000, 99);
  return {text_source(make_text(text), {.step = 1}), chain.loss(text)};
}

void check(const Small& small) {
  const auto backend = make_backend("eigen");
  PreparedWorkload ready = prepare(workload(small.name), {.share = small.share,
                                                          .width_divisor = small.width_divisor,
                                                          .batch = small.batch,
                                                          .dropout = small.dropout,
                                                          .seed = 1});
  const auto drops = [](const Node& node) { return std::holds_alternative<Dropout>(node.op); };
  REQUIRE(std::ranges::any_of(ready.graph.nodes(), drops) == small.dropout);
  const auto batches = static_cast<std::uint64_t>(ready.training->count() / small.batch);
  ready.options.learning_rate = cosine(small.rate, 0, static_cast<std::uint64_t>(small.epochs) * batches);
  ready.options.plan.dtype = small.dtype;
  Trainer trainer(ready.graph, *backend, *ready.training, ready.options);
  const EpochResult last = trainer.train(small.epochs).back();
  REQUIRE(ready.optimum);
  Optimum best = *ready.optimum;
  Score score = last.validation;
  if (ready.validation == nullptr) {
    const NewText text = new_text();
    score = trainer.evaluate(*text.source);
    best.loss = text.loss;
  }
  INFO(small.name << " in " << to_string(small.dtype) << ": loss " << score.loss << ", accuracy " << score.accuracy
                  << "; the best possible are " << best.loss << " and " << best.accuracy << "; in training "
                  << last.training.loss << " and " << last.training.accuracy << "; " << last.seconds << " s an epoch");
  CHECK(score.accuracy >= 0.98 * best.accuracy);
  CHECK(score.accuracy <= best.accuracy + 0.01);  // the best accuracy on these samples; a higher accuracy is luck
  CHECK(score.loss <= 1.02 * best.loss);
  CHECK(score.loss >= 0.98 * best.loss);
}

}  // namespace

TEST_CASE("mnist_mlp reaches the best possible loss and accuracy on rendered digits") {
  check({"mnist_mlp", 2, 2, 64, 1, 1e-3});
}

TEST_CASE("mnist_mlp reaches the best possible loss and accuracy with its dropout, width and batch") {
  check({"mnist_mlp", 2, 1, 128, 1, 2e-3, true});
}

TEST_CASE("mnist_mlp and imdb_fasttext reach the best possible loss and accuracy in half precision") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    check({"mnist_mlp", 2, 2, 64, 1, 1e-3, false, dtype});
    check({"imdb_fasttext", 8, 5, 32, 1, 1e-2, false, dtype});
  }
}

TEST_CASE("mnist_cnn reaches the best possible loss and accuracy on rendered digits") {
  check({"mnist_cnn", 2, 4, 64, 1, 8});
}

TEST_CASE("cifar10_cnn reaches the best possible loss and accuracy on rendered letters", "[slow]") {
  check({"cifar10_cnn", 1.5, 4, 64, 1, 4e-3});
}

TEST_CASE("imdb_fasttext reaches the best possible loss and accuracy on drawn reviews") {
  check({"imdb_fasttext", 8, 5, 32, 1, 1e-2});
}

TEST_CASE("imdb_bilstm reaches the best possible loss and accuracy on drawn reviews", "[slow]") {
  check({"imdb_bilstm", 8, 8, 32, 1, 1e-2});
}

TEST_CASE("lstm_text reaches the best possible loss on a Markov text") { check({"lstm_text", 1, 4, 128, 2, 0.02}); }
