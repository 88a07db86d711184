// The table of the six workloads.

#include "lamina/workloads.h"

#include <string>
#include <vector>

#include "lamina/error.h"
#include "lamina/near_names.h"

namespace lamina {

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      {.name = "mnist_mlp",
       .source = "Keras 2.0.9, examples/mnist_mlp.py",
       .batch = 128,
       .epochs = 20,
       .samples = 60000,
       .optimiser = "keras_rmsprop",
       .learning_rate = 1e-3,
       .decay = 0,
       .drop_last = false},
      {.name = "mnist_cnn",
       .source = "Keras 2.0.9, examples/mnist_cnn.py",
       .batch = 128,
       .epochs = 12,
       .samples = 60000,
       .optimiser = "keras_adadelta",
       .learning_rate = 1,
       .decay = 0,
       .drop_last = false},
      {.name = "cifar10_cnn",
       .source = "Keras 2.0.9, examples/cifar10_cnn.py",
       .batch = 32,
       .epochs = 20,
       .samples = 50000,
       .optimiser = "keras_rmsprop",
       .learning_rate = 1e-4,
       .decay = 1e-6,
       .drop_last = true},
      {.name = "imdb_fasttext",
       .source = "Keras 2.0.9, examples/imdb_fasttext.py with bigrams; every row of the table is updated in every step",
       .batch = 32,
       .epochs = 5,
       .samples = 25000,
       .optimiser = "keras_adam",
       .learning_rate = 1e-3,
       .decay = 0,
       .drop_last = false},
      {.name = "imdb_bilstm",
       .source = "Keras 2.0.9, examples/imdb_bidirectional_lstm.py",
       .batch = 32,
       .epochs = 4,
       .samples = 25000,
       .optimiser = "keras_adam",
       .learning_rate = 1e-3,
       .decay = 0,
       .drop_last = false},
      {.name = "lstm_text",
       .source = "Keras 2.0.9, examples/lstm_text_generation.py",
       .batch = 128,
       .epochs = 10,
       .samples = 200285,
       .optimiser = "keras_rmsprop",
       .learning_rate = 1e-2,
       .decay = 0,
       .drop_last = false},
  };
  return all;
}

const Workload& workload(std::string_view name) {
  std::vector<std::string> names;
  for (const Workload& each : workloads()) {
    if (each.name == name) return each;
    names.emplace_back(each.name);
  }
  throw UsageError("no workload " + std::string(name) + "; " + near_names(name, names));
}

}  // namespace lamina
