// Every workload, smaller than published, learns its synthetic set to what is possible.

#include <cstdio>

#include "lamina/workloads.h"
#include "support/backend.h"
#include "support/catch.h"

using namespace lamina;

namespace {

struct Small {
  const char* name;
  double share;
  int width_divisor, batch, epochs;
  double learning_rate;  ///< 0: the workload's; more where there are fewer steps
};

void check(const Small& small) {
  const auto backend = make_backend("eigen");
  PreparedWorkload ready =
      prepare(workload(small.name),
              {.share = small.share, .width_divisor = small.width_divisor, .batch = small.batch, .seed = 1});
  if (small.learning_rate > 0) ready.options.learning_rate = constant_rate(small.learning_rate);
  Trainer trainer(ready.graph, *backend, *ready.training, ready.options);
  const EpochResult last = trainer.train(small.epochs).back();
  REQUIRE(ready.optimum);
  INFO(small.name << ": loss " << last.training.loss << ", accuracy " << last.training.accuracy << ", validation "
                  << last.validation.loss << ", " << last.validation.accuracy << "; the best possible are "
                  << ready.optimum->loss << " and " << ready.optimum->accuracy << "; " << last.seconds
                  << " s an epoch");
  if (ready.validation != nullptr) {
    CHECK(last.validation.accuracy >= 0.98 * ready.optimum->accuracy);
    CHECK(last.validation.accuracy <= ready.optimum->accuracy + 0.02);  // three deviations of a thousand samples
  } else {
    CHECK(last.training.loss <= 1.02 * ready.optimum->loss);
  }
}

}  // namespace

TEST_CASE("mnist_mlp reaches the best possible accuracy on rendered digits") { check({"mnist_mlp", 0.2, 2, 64, 6, 0}); }

TEST_CASE("mnist_cnn reaches the best possible accuracy on rendered digits") { check({"mnist_cnn", 0.1, 4, 64, 4, 0}); }

TEST_CASE("cifar10_cnn reaches the best possible accuracy on rendered letters") {
  check({"cifar10_cnn", 0.1, 4, 32, 6, 2e-3});
}

TEST_CASE("imdb_fasttext reaches the best possible accuracy on drawn reviews") {
  check({"imdb_fasttext", 1, 5, 32, 5, 1e-2});
}

TEST_CASE("imdb_bilstm reaches the best possible accuracy on drawn reviews") {
  check({"imdb_bilstm", 0.6, 4, 32, 2, 3e-3});
}
