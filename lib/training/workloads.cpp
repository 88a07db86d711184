// The table of the six workloads.

#include "lamina/workloads.h"

#include <string>
#include <vector>

#include "lamina/error.h"
#include "lamina/near_names.h"

namespace lamina {

const std::vector<Workload>& workloads() {
  static const std::vector<Workload> all = {
      // name, source, batch, epochs, samples, optimiser, learning rate, decay, drop_last
      {"mnist_mlp", "Keras 2.0.9, examples/mnist_mlp.py", 128, 20, 60000, "keras_rmsprop", 1e-3, 0, false},
      {"mnist_cnn", "Keras 2.0.9, examples/mnist_cnn.py", 128, 12, 60000, "keras_adadelta", 1, 0, false},
      {"cifar10_cnn", "Keras 2.0.9, examples/cifar10_cnn.py", 32, 20, 50000, "keras_rmsprop", 1e-4, 1e-6, true},
      {"imdb_fasttext",
       "Keras 2.0.9, examples/imdb_fasttext.py with bigrams; every row of the table is updated in every step", 32, 5,
       25000, "keras_adam", 1e-3, 0, false},
      {"imdb_bilstm", "Keras 2.0.9, examples/imdb_bidirectional_lstm.py", 32, 4, 25000, "keras_adam", 1e-3, 0, false},
      {"lstm_text", "Keras 2.0.9, examples/lstm_text_generation.py", 128, 10, 200285, "keras_rmsprop", 1e-2, 0, false},
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
