// The table of the six workloads, and their judgement.

#include "lamina/workloads.h"

#include <algorithm>
#include <cmath>

#include "lamina/error.h"
#include "lib/support/near.h"
#include "lib/support/shortest.h"

namespace lamina {

const std::vector<Workload>& workloads() {
  // Bands: lowest and highest of six runs each, on K80, P100 (TensorFlow, CNTK) and 16 and 32 virtual processors.
  static const std::vector<Workload> all = {
      {.name = "mnist_mlp",
       .source = "Keras 2.0.9, examples/mnist_mlp.py",
       .batch = 128,
       .epochs = 20,
       .samples = 60000,
       .forward_macs = 668672,
       .optimiser = "keras_rmsprop",
       .learning_rate = 1e-3,
       .decay = 0,
       .drop_last = false,
       .first_loss = {.242, .248},
       .last_loss = {.0166, .0196},
       .first_accuracy = {.958, .973},
       .last_accuracy = {.980, .984}},
      {.name = "mnist_cnn",
       .source = "Keras 2.0.9, examples/mnist_cnn.py",
       .batch = 128,
       .epochs = 12,
       .samples = 60000,
       .forward_macs = 11992448,
       .optimiser = "keras_adadelta",
       .learning_rate = 1,
       .decay = 0,
       .drop_last = false,
       .first_loss = {.327, .351},
       .last_loss = {.0355, .0370},
       .first_accuracy = {.973, .977},
       .last_accuracy = {.9892, .9916}},
      {.name = "cifar10_cnn",
       .source = "Keras 2.0.9, examples/cifar10_cnn.py",
       .batch = 32,
       .epochs = 20,
       .samples = 50000,
       .forward_macs = 20741120,
       .optimiser = "keras_rmsprop",
       .learning_rate = 1e-4,
       .decay = 1e-6,
       .drop_last = true,
       .first_loss = {1.828, 1.897},
       .last_loss = {.857, .889},
       .first_accuracy = {.430, .455},
       .last_accuracy = {.733, .750}},
      {.name = "imdb_fasttext",
       .source = "Keras 2.0.9, examples/imdb_fasttext.py with bigrams; every row of the table is updated in every step",
       .batch = 32,
       .epochs = 5,
       .samples = 25000,
       .forward_macs = 20050,
       .optimiser = "keras_adam",
       .learning_rate = 1e-3,
       .decay = 0,
       .drop_last = false,
       .first_loss = {.5802, .5820},
       .last_loss = {.0409, .0414},
       .first_accuracy = {.857, .860},
       .last_accuracy = {.9041, .9064}},
      {.name = "imdb_bilstm",
       .source = "Keras 2.0.9, examples/imdb_bidirectional_lstm.py",
       .batch = 32,
       .epochs = 4,
       .samples = 25000,
       .forward_macs = 9830528,
       .optimiser = "keras_adam",
       .learning_rate = 1e-3,
       .decay = 0,
       .drop_last = false,
       .first_loss = {.411, .425},
       .last_loss = {.063, .092},
       .first_accuracy = {.847, .853},
       .last_accuracy = {.830, .836}},
      {.name = "lstm_text",
       .source = "Keras 2.0.9, examples/lstm_text_generation.py",
       .batch = 128,
       .epochs = 10,
       .samples = 200285,
       .forward_macs = 3796096,
       .optimiser = "keras_rmsprop",
       .learning_rate = 1e-2,
       .decay = 0,
       .drop_last = false,
       .first_loss = {1.952, 2.045},
       .last_loss = {1.385, 1.437},
       .first_accuracy = {},
       .last_accuracy = {}},
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

Judgement judge(const Workload& workload, std::span<const EpochResult> epochs) {
  if (static_cast<int>(epochs.size()) != workload.epochs)
    throw UsageError(std::string(workload.name) + ": bands are of " + std::to_string(workload.epochs) +
                     " epochs, and the run has " + std::to_string(epochs.size()));
  Judgement all;
  const auto line = [&](const char* what, const Band& band, double value) {
    const bool in = !band.known() || band.accepts(value);
    if (band.known())
      all.lines.push_back(std::string(what) + " " + shortest(value) + (in ? ": in" : ": NOT in") + " the published " +
                          shortest(band.low) + " to " + shortest(band.high) + ", widened by its width");
    return in;
  };
  line("loss, first epoch", workload.first_loss, epochs.front().training.loss);
  line("validation accuracy, first epoch", workload.first_accuracy, epochs.front().validation.accuracy);
  const bool loss = line("loss, last epoch", workload.last_loss, epochs.back().training.loss);
  const bool accuracy =
      line("validation accuracy, last epoch", workload.last_accuracy, epochs.back().validation.accuracy);
  all.accepted = loss && accuracy;
  return all;
}

}  // namespace lamina
