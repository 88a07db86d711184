// The networks and data of the six workloads.

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <utility>

#include "lamina/error.h"
#include "lamina/nets.h"
#include "lamina/workloads.h"
#include "lib/core/numbers/rounding.h"

namespace lamina {
namespace {

constexpr double keras_clip = 1e-7;

/// Sizes of a workload that come from its data.
struct Sizes {
  int batch;
  int vocabulary = 0;  ///< number of ids that may occur
};

struct Data {
  std::unique_ptr<Source> training{}, validation{};
  std::string name{};
  bool synthetic = false;
  std::optional<Optimum> optimum{};
  int vocabulary = 0;
};

int narrow(int width, const WorkloadOptions& options) {
  return static_cast<int>(divide_up(width, options.width_divisor));
}

std::int64_t part(std::int64_t samples, double share) {
  return std::max<std::int64_t>(1, std::llround(static_cast<double>(samples) * share));
}

/// The number of samples to validate on. More than the published number would only take time.
std::int64_t unseen_part(std::int64_t samples, const WorkloadOptions& options) {
  return part(samples, std::min(options.share, 1.0));
}

// ---- Networks -------------------------------------------------------------------------------------------------------

Graph image_network(const Workload& workload, const Sizes& sizes, const WorkloadOptions& options) {
  Graph graph = nets::build(
      workload.name,
      {.batch = sizes.batch, .width_divisor = options.width_divisor, .dropout = options.dropout, .softmax = false});
  const Value logits = graph.value(graph.nodes().back().name);
  softmax_cross_entropy(logits, graph.input({sizes.batch, 1, 1, 1}, "labels"), "loss", {.clip = keras_clip});
  return graph;
}

/// The network from ids of {batch, 1, steps, 1} to one logit.
Graph fasttext(const Workload&, const Sizes& sizes, const WorkloadOptions& options) {
  Graph graph("imdb_fasttext");
  const Value labels = graph.input({sizes.batch, 1, 1, 1}, "labels");
  Value x = graph.input({sizes.batch, 1, 400, 1}, "ids");
  x = embedding(x, "embedding_1", {.vocabulary = sizes.vocabulary, .features = narrow(50, options)});
  x = global_average_pool(x, "mean");  // over all steps, padding included
  x = fully_connected(x, "dense_1", {.outputs = 1});
  sigmoid_cross_entropy(x, labels, "loss", {.clip = keras_clip});
  return graph;
}

Graph bilstm(const Workload&, const Sizes& sizes, const WorkloadOptions& options) {
  Graph graph("imdb_bilstm");
  const Value labels = graph.input({sizes.batch, 1, 1, 1}, "labels");
  Value x = graph.input({sizes.batch, 1, 100, 1}, "ids");
  x = embedding(x, "embedding_1", {.vocabulary = sizes.vocabulary, .features = narrow(128, options)});
  const int hidden = narrow(64, options);
  const Value forward = lstm(x, "lstm_1", {.hidden = hidden, .steps = Steps::last});
  const Value backward = lstm(x, "lstm_1_reverse", {.hidden = hidden, .steps = Steps::last, .reverse = true});
  x = concat({forward, backward}, "bidirectional_1");
  if (options.dropout) x = dropout(x, "dropout_1", {.rate = 0.5});
  x = fully_connected(x, "dense_1", {.outputs = 1});
  sigmoid_cross_entropy(x, labels, "loss", {.clip = keras_clip});
  return graph;
}

/// The network from characters as ids. The LSTM takes each id as its one-hot vector.
Graph text_network(const Workload&, const Sizes& sizes, const WorkloadOptions& options) {
  Graph graph("lstm_text");
  const Value labels = graph.input({sizes.batch, 1, 1, 1}, "labels");
  Value x = graph.input({sizes.batch, 1, 40, 1}, "characters");
  x = lstm(x, "lstm_1", {.hidden = narrow(128, options), .steps = Steps::last, .vocabulary = sizes.vocabulary});
  x = fully_connected(x, "dense_1", {.outputs = sizes.vocabulary});
  softmax_cross_entropy(x, labels, "loss", {.clip = keras_clip});
  return graph;
}

// ---- Data -----------------------------------------------------------------------------------------------------------

Data glyphs(const GlyphOptions& kind, const ImageOptions& augmentation, std::int64_t train, std::int64_t test,
            const WorkloadOptions& options) {
  const Glyphs all(kind);
  ImageSet unseen = all.draw(unseen_part(test, options), options.seed * 2 + 2);
  Data data{.name = "synthetic glyphs", .synthetic = true, .optimum = all.best_on(unseen), .vocabulary = 0};
  data.training = image_source(all.draw(part(train, options.share), options.seed * 2 + 1), augmentation);
  data.validation = image_source(std::move(unseen));
  return data;
}

Data mnist(const WorkloadOptions& options) {
  if (options.data.empty()) return glyphs(Glyphs::mnist(), {}, 60000, 10000, options);
  return {.training = image_source(read_mnist(options.data, Part::train)),
          .validation = image_source(read_mnist(options.data, Part::test)),
          .name = "MNIST"};
}

Data cifar10(const WorkloadOptions& options) {
  const ImageOptions augmentation{.shift = 0.1, .flip = true};
  if (options.data.empty()) return glyphs(Glyphs::cifar10(), augmentation, 50000, 10000, options);
  return {.training = image_source(read_cifar10(options.data, Part::train), augmentation),
          .validation = image_source(read_cifar10(options.data, Part::test)),
          .name = "CIFAR-10"};
}

/// `name` is the start of the names of the files.
Data reviews(const WorkloadOptions& options, int length, const std::string& name) {
  Data data;
  IdSet train, test;
  if (options.data.empty()) {
    const Reviews all;
    train = all.draw(part(25000, options.share), options.seed * 2 + 1);
    test = all.draw(unseen_part(25000, options), options.seed * 2 + 2);
    data.name = "synthetic reviews";
    data.synthetic = true;
    data.optimum = all.best_on(test);
  } else {
    const std::string files[] = {name + "-train.ids", name + "-test.ids"};
    const std::string script = name == "imdb" ? "bench/imdb-to-ids" : "bench/imdb-to-ids --bigrams";
    for (const std::string& file : files)
      if (!std::filesystem::exists(options.data / file))
        throw FileError(options.data.string() + ": has no " + file + "; " + script + " makes it of Keras' imdb.npz");
    train = read_ids(options.data / files[0]);
    test = read_ids(options.data / files[1]);
    data.name = "IMDB";
  }
  data.vocabulary = static_cast<int>(std::max(train.vocabulary, test.vocabulary));
  data.training = id_source(std::move(train), length);
  data.validation = id_source(std::move(test), length);
  return data;
}

Data text(const WorkloadOptions& options) {
  Data data;
  Text all;
  if (options.data.empty()) {
    const MarkovText chain;
    const std::string drawn = chain.draw(part(600893, options.share), options.seed + 1);
    all = make_text(drawn);
    data.name = "synthetic text";
    data.synthetic = true;
    data.optimum = chain.optimum();
    data.optimum->loss = chain.loss(drawn);  // loss on this text: the training has no other
  } else {
    all = read_text(options.data / "nietzsche.txt");
    data.name = "Nietzsche";
  }
  data.vocabulary = static_cast<int>(all.alphabet.size());
  data.training = text_source(std::move(all), {});
  return data;
}

struct Maker {
  std::string_view name;
  std::function<Data(const WorkloadOptions&)> data;
  std::function<Graph(const Workload&, const Sizes&, const WorkloadOptions&)> graph;
};

const Maker& maker(std::string_view name) {
  static const std::vector<Maker> all = {
      {"mnist_mlp", mnist, image_network},
      {"mnist_cnn", mnist, image_network},
      {"cifar10_cnn", cifar10, image_network},
      {"imdb_fasttext", [](const WorkloadOptions& o) { return reviews(o, 400, "imdb-bigrams"); }, fasttext},
      {"imdb_bilstm", [](const WorkloadOptions& o) { return reviews(o, 100, "imdb"); }, bilstm},
      {"lstm_text", text, text_network},
  };
  const auto found = std::ranges::find(all, name, &Maker::name);
  if (found == all.end()) throw UsageError("no workload " + std::string(name));
  return *found;
}

}  // namespace

PreparedWorkload prepare(const Workload& workload, const WorkloadOptions& options) {
  constexpr double most = 16;
  if (!(options.share > 0 && options.share <= most))
    throw UsageError("share is " + std::to_string(options.share) + "; it should be above 0, and at most 16");
  if (options.width_divisor < 1 || options.batch < 0)
    throw UsageError("width_divisor should be at least 1, and batch at least 0");
  if (options.share != 1 && !options.data.empty()) throw UsageError("share is for synthetic sets; leave it at 1");
  const Maker& make = maker(workload.name);
  Data data = make.data(options);
  const Sizes sizes{options.batch > 0 ? options.batch : workload.batch, data.vocabulary};
  Graph graph = make.graph(workload, sizes, options);
  TrainerOptions train;
  train.optimiser = named_optimiser(workload.optimiser).optimiser;
  train.learning_rate = inverse_time(workload.learning_rate, workload.decay);
  train.drop_last = workload.drop_last;
  train.seed = options.seed;
  train.validation = data.validation.get();
  return {std::move(graph), std::move(data.training), std::move(data.validation),
          std::move(train), std::move(data.name),     data.synthetic,
          data.optimum};
}

}  // namespace lamina
