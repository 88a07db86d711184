// The six workloads: their table, their networks and their data.

#include "lamina/workloads.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "lamina/error.h"
#include "lamina/nets.h"
#include "lib/core/numbers/rounding.h"

namespace lamina {
namespace {

constexpr double keras_clip = 1e-7;

/// What determines a network.
struct Wanted {
  const WorkloadOptions& options;
  std::string_view name;
  int batch;
  int vocabulary;  ///< number of ids that may occur in its data

  /// The width of a hidden layer.
  int narrow(int width) const { return static_cast<int>(divide_up(width, options.width_divisor)); }
};

std::int64_t part(std::int64_t samples, double share) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(samples) * share));
}

/// The number of samples to validate on. More than the published number would only take time.
std::int64_t unseen_part(std::int64_t samples, const WorkloadOptions& options) {
  return part(samples, std::min(options.share, 1.0));
}

// ---- Networks -------------------------------------------------------------------------------------------------------

Graph image_network(const Wanted& its) {
  Graph graph = nets::build(its.name, {.batch = its.batch,
                                       .width_divisor = its.options.width_divisor,
                                       .dropout = its.options.dropout,
                                       .softmax = false});
  const Value logits = graph.value(graph.nodes().back().name);
  softmax_cross_entropy(logits, graph.input({its.batch, 1, 1, 1}, "labels"), "loss", {.clip = keras_clip});
  return graph;
}

/// A network from ids of {batch, 1, steps, 1} to one logit: body(embedded ids) gives the input of the last layer.
Graph ids_network(const Wanted& its, const char* name, int steps, int features,
                  const std::function<Value(Value)>& body) {
  Graph graph(name);
  const Value labels = graph.input({its.batch, 1, 1, 1}, "labels");
  const Value ids = graph.input({its.batch, 1, steps, 1}, "ids");
  const Value x = body(embedding(ids, "embedding_1", {.vocabulary = its.vocabulary, .features = its.narrow(features)}));
  sigmoid_cross_entropy(fully_connected(x, "dense_1", {.outputs = 1}), labels, "loss", {.clip = keras_clip});
  return graph;
}

Graph fasttext(const Wanted& its) {  // the mean over all steps, padding included
  return ids_network(its, "imdb_fasttext", 400, 50, [](Value x) { return global_average_pool(x, "mean"); });
}

Graph bilstm(const Wanted& its) {
  return ids_network(its, "imdb_bilstm", 100, 128, [&](Value x) {
    const int hidden = its.narrow(64);
    const Value forward = lstm(x, "lstm_1", {.hidden = hidden, .steps = Steps::last});
    const Value backward = lstm(x, "lstm_1_reverse", {.hidden = hidden, .steps = Steps::last, .reverse = true});
    const Value both = concat({forward, backward}, "bidirectional_1");
    return its.options.dropout ? dropout(both, "dropout_1", {.rate = 0.5}) : both;
  });
}

/// The network from characters as ids. The LSTM takes each id as its one-hot vector.
Graph text_network(const Wanted& its) {
  Graph graph("lstm_text");
  const Value labels = graph.input({its.batch, 1, 1, 1}, "labels");
  Value x = graph.input({its.batch, 1, 40, 1}, "characters");
  x = lstm(x, "lstm_1", {.hidden = its.narrow(128), .steps = Steps::last, .vocabulary = its.vocabulary});
  x = fully_connected(x, "dense_1", {.outputs = its.vocabulary});
  softmax_cross_entropy(x, labels, "loss", {.clip = keras_clip});
  return graph;
}

// ---- Data -----------------------------------------------------------------------------------------------------------

// Each function makes the data of a workload, and returns the number of ids that may occur in it.

/// The sets that `read` finds in the folder of the options. Without a folder, synthetic glyphs.
int images(PreparedWorkload& made, const WorkloadOptions& options, const std::string& name,
           ImageSet (*read)(const std::filesystem::path&, Part), const GlyphOptions& kind, std::int64_t train,
           const ImageOptions& augmentation) {
  if (!options.data.empty()) {
    made.training = image_source(read(options.data, Part::train), augmentation);
    made.validation = image_source(read(options.data, Part::test));
    made.data = name;
    return 0;
  }
  const Glyphs all(kind);
  ImageSet unseen = all.draw(unseen_part(10000, options), options.seed * 2 + 2);
  made.data = "synthetic glyphs";
  made.optimum = all.best_on(unseen);
  made.training = image_source(all.draw(part(train, options.share), options.seed * 2 + 1), augmentation);
  made.validation = image_source(std::move(unseen));
  return 0;
}

int mnist(PreparedWorkload& made, const WorkloadOptions& options) {
  return images(made, options, "MNIST", read_mnist, Glyphs::mnist(), 60000, {});
}

int cifar10(PreparedWorkload& made, const WorkloadOptions& options) {
  return images(made, options, "CIFAR-10", read_cifar10, Glyphs::cifar10(), 50000, {.shift = 0.1, .flip = true});
}

/// `name` is the start of the names of the files.
int reviews(PreparedWorkload& made, const WorkloadOptions& options, int length, const std::string& name) {
  IdSet train, test;
  if (options.data.empty()) {
    const Reviews all;
    train = all.draw(part(25000, options.share), options.seed * 2 + 1);
    test = all.draw(unseen_part(25000, options), options.seed * 2 + 2);
    made.data = "synthetic reviews";
    made.optimum = all.best_on(test);
  } else {
    const std::string files[] = {name + "-train.ids", name + "-test.ids"};
    const std::string script = name == "imdb" ? "bench/imdb-to-ids" : "bench/imdb-to-ids --bigrams";
    for (const std::string& file : files)
      if (!std::filesystem::exists(options.data / file))
        throw FileError(options.data.string() + ": has no " + file + "; " + script + " makes it from Keras' imdb.npz");
    train = read_ids(options.data / files[0]);
    test = read_ids(options.data / files[1]);
    made.data = "IMDB";
  }
  const std::uint32_t vocabulary = std::max(train.vocabulary, test.vocabulary);
  made.training = id_source(std::move(train), length);
  made.validation = id_source(std::move(test), length);
  return static_cast<int>(vocabulary);
}

int text(PreparedWorkload& made, const WorkloadOptions& options) {
  Text all;
  if (options.data.empty()) {
    const MarkovText chain;
    const std::string drawn = chain.draw(part(600893, options.share), options.seed + 1);
    all = make_text(drawn);
    made.data = "synthetic text";
    made.optimum = chain.optimum();
    made.optimum->loss = chain.loss(drawn);  // loss on this text, the only text of the training
  } else {
    all = read_text(options.data / "nietzsche.txt");
    made.data = "Nietzsche";
  }
  const std::size_t vocabulary = all.alphabet.size();
  made.training = text_source(std::move(all), {});
  return static_cast<int>(vocabulary);
}

/// The functions that make the data and the network of a workload.
struct Maker {
  int (*data)(PreparedWorkload&, const WorkloadOptions&);
  Graph (*network)(const Wanted&);
};

constexpr Maker makers[] = {
    // in the order of workloads()
    {mnist, image_network},
    {mnist, image_network},
    {cifar10, image_network},
    {[](PreparedWorkload& made, const WorkloadOptions& options) { return reviews(made, options, 400, "imdb-bigrams"); },
     fasttext},
    {[](PreparedWorkload& made, const WorkloadOptions& options) { return reviews(made, options, 100, "imdb"); },
     bilstm},
    {text, text_network},
};

}  // namespace

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
  const auto found = std::ranges::find(workloads(), name, &Workload::name);
  if (found != workloads().end()) return *found;
  std::vector<std::string> names;
  for (const Workload& each : workloads()) names.emplace_back(each.name);
  throw UsageError("no workload " + std::string(name) + "; " + near_names(name, names));
}

PreparedWorkload prepare(const Workload& its, const WorkloadOptions& options) {
  constexpr double most = 16;
  if (!(options.share > 0 && options.share <= most))
    throw UsageError("share is " + std::to_string(options.share) + "; it should be above 0, and at most 16");
  if (options.width_divisor < 1 || options.batch < 0)
    throw UsageError("width_divisor should be at least 1, and batch at least 0");
  if (options.share != 1 && !options.data.empty()) throw UsageError("share is for synthetic sets; leave it at 1");
  const Maker& make = makers[&workload(its.name) - workloads().data()];
  PreparedWorkload made{Graph(std::string(its.name)), {}, {}, {}, {}, options.data.empty(), {}};
  const int vocabulary = make.data(made, options);
  TrainerOptions& train = made.options;
  train.optimiser = named_optimiser(its.optimiser).optimiser;
  train.learning_rate = inverse_time(its.learning_rate, its.decay);
  train.drop_last = its.drop_last;
  train.seed = options.seed;
  train.validation = made.validation.get();
  made.graph = make.network({options, its.name, options.batch > 0 ? options.batch : its.batch, vocabulary});
  return made;
}

}  // namespace lamina
