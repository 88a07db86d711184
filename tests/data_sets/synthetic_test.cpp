// Synthetic data sets: their best classifiers are checked by brute force, by their predicted accuracy and by closed
// formulas.

#include "lamina/synthetic.h"
#include "lamina/data.h"
#include "tests/io/files.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

std::span<const std::uint8_t> image(const ImageSet& set, std::int64_t i) {
  const auto bytes = static_cast<std::size_t>(set.image.image());
  return std::span(set.pixels).subspan(static_cast<std::size_t>(i) * bytes, bytes);
}

/// The mean image of each class. It shows the glyph clearly, because there is no shift and the noise is low.
std::vector<std::vector<double>> templates(GlyphOptions options) {
  options.shift = 0;
  options.noise = 16;
  options.wrong_labels = 0;
  const ImageSet set = Glyphs(options).draw(200 * options.classes, 31);
  std::vector<std::vector<double>> means(static_cast<std::size_t>(options.classes),
                                         std::vector<double>(static_cast<std::size_t>(set.image.image())));
  std::vector<double> counts(means.size());
  for (std::int64_t i = 0; i < set.count(); ++i) {
    const std::size_t c = set.labels[static_cast<std::size_t>(i)];
    ++counts[c];
    for (std::size_t k = 0; k < means[c].size(); ++k) means[c][k] += image(set, i)[k];
  }
  for (std::size_t c = 0; c < means.size(); ++c)
    for (double& mean : means[c]) mean /= counts[c];
  return means;
}

/// The grey level nearest to a mean of many bytes. Levels are at least 16 apart, and means are off by about 16 /
/// sqrt(100).
double level_near(double mean) {
  const std::array levels = {64.0, 80.0, 96.0, 144.0, 160.0, 192.0};
  return *std::ranges::min_element(levels, [&](double a, double b) { return std::abs(a - mean) < std::abs(b - mean); });
}

double normal_cdf(double z) { return 0.5 * std::erfc(-z / std::sqrt(2.0)); }

double byte_probability(int byte, double mean, double noise) {
  const double below = byte == 0 ? 0 : normal_cdf((byte - 0.5 - mean) / noise);
  const double up_to = byte == 255 ? 1 : normal_cdf((byte + 0.5 - mean) / noise);
  return up_to - below;
}

/// Compares a classifier's probabilities with the drawn labels. Each sum of deviations must be in the range of 99.99 %
/// of such sums of independent numbers. The sample itself gives their spread.
class Promises {
 public:
  void add(std::span<const double> p, std::size_t label) {
    double entropy = 0, squares = 0;
    for (const double value : p) {
      if (value > 0) entropy -= value * std::log(value);
      squares += value * value;
    }
    const auto best = static_cast<std::size_t>(std::ranges::max_element(p) - p.begin());
    right_.add((best == label ? 1 : 0) - p[best]);
    loss_.add(-std::log(p[label]) - entropy);
    own_.add(p[label] - squares);
    accuracy += best == label ? 1 : 0;
    loss -= std::log(p[label]);
    ++count;
  }
  /// Checks the deviations, and the accuracy and loss that the classifier reports.
  void check(const Optimum& reached) const {
    CHECK(reached.accuracy == Approx(accuracy / count).epsilon(1e-12));
    CHECK(reached.loss == Approx(loss / count).epsilon(1e-12));
    CHECK(std::abs(right_.z()) < 3.9);
    CHECK(std::abs(loss_.z()) < 3.9);
    CHECK(std::abs(own_.z()) < 3.9);
  }
  double accuracy = 0, loss = 0, count = 0;

 private:
  struct Sum {
    double sum = 0, squares = 0;
    void add(double value) { sum += value, squares += value * value; }
    double z() const { return sum / std::sqrt(squares); }
  };
  Sum right_, loss_, own_;
};

}  // namespace

TEST_CASE("a glyph's posterior agrees with brute force over all classes, places and bytes") {
  GlyphOptions options = GENERATE(Glyphs::mnist(), Glyphs::cifar10());
  options.noise = GENERATE(16.0, 300.0);
  options.shift = 1;
  options.wrong_labels = 0.1;
  options.classes = 7;
  const std::vector<std::vector<double>> glyphs = templates(options);
  const Glyphs source(options);
  const ImageSet set = source.draw(6, 9);
  const auto height = static_cast<std::size_t>(options.image.h), width = static_cast<std::size_t>(options.image.w);
  for (std::int64_t i = 0; i < set.count(); ++i) {
    std::vector<double> logs;
    for (const std::vector<double>& glyph : glyphs) {
      for (std::size_t place = 0; place < 9; ++place) {
        double log = 0;
        for (std::size_t k = 0; k < glyph.size(); ++k) {
          const std::size_t plane = k / (height * width), h = k / width % height, w = k % width;
          // Rows and columns beyond the image are background, like the pixels at the image's edge.
          const std::size_t from_h = std::clamp<std::size_t>(h + place / 3, 1, height) - 1;
          const std::size_t from_w = std::clamp<std::size_t>(w + place % 3, 1, width) - 1;
          const double mean = level_near(glyph[(plane * height + from_h) * width + from_w]);
          log += std::log(byte_probability(image(set, i)[k], mean, options.noise));
        }
        logs.push_back(log);
      }
    }
    const double largest = *std::ranges::max_element(logs);
    std::vector<double> p(glyphs.size());
    for (std::size_t k = 0; k < logs.size(); ++k) p[k / 9] += std::exp(logs[k] - largest);
    const double total = std::accumulate(p.begin(), p.end(), 0.0);
    const std::vector<double> found = source.posterior(image(set, i));
    REQUIRE(found.size() == p.size());
    for (std::size_t c = 0; c < p.size(); ++c) {
      const double glyph = p[c] / total, label = 0.9 * glyph + 0.1 / 6 * (1 - glyph);
      CHECK(found[c] == Approx(label).epsilon(1e-9));
    }
  }
}

TEST_CASE("glyphs: the best classifier reaches its predicted accuracy and loss, which are the optimum") {
  GlyphOptions options = GENERATE(Glyphs::mnist(), Glyphs::cifar10());
  options.noise = options.image.c == 1 ? 250 : 400;
  options.wrong_labels = GENERATE(0.0, 0.2);
  const Glyphs source(options);
  const ImageSet set = source.draw(1500, 77);
  Promises promises;
  for (std::int64_t i = 0; i < set.count(); ++i)
    promises.add(source.posterior(image(set, i)), set.labels[static_cast<std::size_t>(i)]);
  const Optimum reached = source.best_on(set);
  promises.check(reached);
  CHECK(reached.loss_margin == 0);
  const Optimum best = source.optimum(1500, 78);
  CHECK(best.accuracy < 0.98);  // the noise makes errors unavoidable
  CHECK(best.accuracy > 0.5);
  const double spread = std::sqrt(best.accuracy * (1 - best.accuracy) / promises.count);
  CHECK(promises.accuracy / promises.count == Approx(best.accuracy).margin(best.accuracy_margin * 1.5 + 3.9 * spread));
  CHECK(promises.loss / promises.count == Approx(best.loss).margin(0.15));
  CHECK(best.accuracy_margin > 0);
  CHECK(best.accuracy_margin < 0.03);
  CHECK(best.loss_margin < 0.1);
}

TEST_CASE("glyphs with the default options can be told apart, except for wrong labels") {
  for (const GlyphOptions& options : {Glyphs::mnist(), Glyphs::cifar10()}) {
    const Optimum best = Glyphs(options).optimum(300, 5);
    CHECK(best.accuracy == Approx(0.95).margin(1e-4));
    CHECK(best.loss == Approx(-0.95 * std::log(0.95) - 0.05 * std::log(0.05 / 9)).margin(1e-3));
  }
}

TEST_CASE("the ten glyphs differ, and only the symmetric glyphs are their own mirror images") {
  for (const bool symmetric : {false, true}) {
    const auto glyphs = templates({.symmetric = symmetric});
    for (std::size_t a = 0; a < 10; ++a) {
      int mirrored = 0;
      for (std::size_t k = 0; k < 28 * 28; ++k) {
        // The glyph has 15 of 28 columns: 6 to 20.
        const std::size_t h = k / 28, w = k % 28, mirror = w < 6 || w > 20 ? w : 26 - w;
        mirrored += level_near(glyphs[a][k]) == level_near(glyphs[a][h * 28 + mirror]) ? 1 : 0;
      }
      if (symmetric) CHECK(mirrored == 28 * 28);
      if (!symmetric && (a == 2 || a == 7)) CHECK(mirrored < 28 * 28);
      for (std::size_t b = 0; b < a; ++b) {
        int differing = 0;
        for (std::size_t k = 0; k < 28 * 28; ++k)
          differing += level_near(glyphs[a][k]) != level_near(glyphs[b][k]) ? 1 : 0;
        CHECK(differing >= 9);  // at least one cell of 3 x 3 pixels
      }
    }
  }
}

TEST_CASE("glyphs occur at every position that the shift allows") {
  GlyphOptions options{.classes = 2, .shift = 2, .noise = 16, .wrong_labels = 0};
  const ImageSet set = Glyphs(options).draw(500, 3);
  std::array<std::array<int, 5>, 2> seen{};
  for (std::int64_t i = 0; i < set.count(); ++i) {
    if (set.labels[static_cast<std::size_t>(i)] != 0) continue;  // the digit 0 touches all sides of its cells
    const std::span bytes = image(set, i);
    const auto row_sum = [&](std::size_t h) {
      return std::accumulate(bytes.begin() + 28 * static_cast<long>(h), bytes.begin() + 28 * static_cast<long>(h + 1),
                             0);
    };
    std::size_t first_row = 0;
    while (row_sum(first_row) < 28 * 64 + 600) ++first_row;  // a row with nine pixels of ink is brighter by 1152
    std::size_t first_column = 0;
    const auto column_sum = [&](std::size_t w) {
      int sum = 0;
      for (std::size_t h = 0; h < 28; ++h) sum += bytes[28 * h + w];
      return sum;
    };
    while (column_sum(first_column) < 28 * 64 + 900) ++first_column;
    REQUIRE((first_row >= 1 && first_row <= 5));
    REQUIRE((first_column >= 4 && first_column <= 8));
    ++seen[0][first_row - 1];
    ++seen[1][first_column - 4];
  }
  for (const auto& axis : seen)
    for (const int times : axis) CHECK(times > 20);  // 50 are expected
}

TEST_CASE("synthetic sets are functions of their seed, and fit into the file formats of the real sets") {
  const Folder folder;
  const ImageSet digits = Glyphs(Glyphs::mnist()).draw(20, 1);
  CHECK(Glyphs(Glyphs::mnist()).draw(20, 1).pixels == digits.pixels);
  CHECK(Glyphs(Glyphs::mnist()).draw(20, 2).pixels != digits.pixels);
  const IdSet reviews = Reviews().draw(20, 1);
  CHECK(Reviews().draw(20, 1).ids == reviews.ids);
  CHECK(Reviews().draw(20, 2).ids != reviews.ids);
  const MarkovText chain;
  const std::string text = chain.draw(3000, 1);
  CHECK(chain.draw(3000, 1) == text);
  CHECK(chain.draw(3000, 2) != text);
  CHECK(chain.draw(100, 1) == text.substr(0, 100));

  write_mnist(folder.path(), Part::train, digits);
  CHECK(read_mnist(folder.path(), Part::train).pixels == digits.pixels);
  const ImageSet letters = Glyphs(Glyphs::cifar10()).draw(20, 1);
  write_cifar10(folder / "test_batch.bin", letters);
  CHECK(read_cifar10(folder.path(), Part::test).pixels == letters.pixels);
  write_ids(folder / "reviews", reviews);
  CHECK(read_ids(folder / "reviews").ids == reviews.ids);
  CHECK(make_text(text).alphabet.size() <= 20);
  CHECK(make_text(text).ids.size() == 3000);
}

TEST_CASE("reviews: a classifier by likelihood ratio reaches its predicted accuracy, which is the optimum") {
  const Reviews source({.vocabulary = 300, .shortest = 5, .longest = 30, .tilt = 0.3});
  const IdSet set = source.draw(6000, 8);
  Promises promises;
  for (std::int64_t i = 0; i < set.count(); ++i) {
    const double p = 1 / (1 + std::exp(-source.log_odds(set.list(i))));
    promises.add(std::array{1 - p, p}, set.labels[static_cast<std::size_t>(i)]);
  }
  promises.check(source.best_on(set));
  const Optimum best = source.optimum(6000, 9);
  CHECK(best.accuracy > 0.8);
  CHECK(best.accuracy < 0.95);
  CHECK(promises.accuracy / promises.count == Approx(best.accuracy).margin(0.02));
  CHECK(promises.loss / promises.count == Approx(best.loss).margin(0.04));
  CHECK(best.accuracy_margin < 0.005);
}

TEST_CASE("a word's ratio is the ratio of its frequencies in the two classes") {
  const Reviews source({.vocabulary = 13, .shortest = 40, .longest = 60, .tilt = 0.5});
  const IdSet set = source.draw(4000, 2);
  std::array<std::array<double, 13>, 2> counts{};
  std::array<double, 2> totals{};
  for (std::int64_t i = 0; i < set.count(); ++i) {
    const std::span<const std::uint32_t> list = set.list(i);
    const std::size_t c = set.labels[static_cast<std::size_t>(i)];
    REQUIRE(list[0] == 1);
    REQUIRE((list.size() >= 41 && list.size() <= 61));
    for (const std::uint32_t id : list.subspan(1)) {
      REQUIRE((id >= 3 && id < 13));
      ++counts[c][id];
      ++totals[c];
    }
  }
  for (std::uint32_t id = 3; id < 13; ++id) {
    const double found = std::log(counts[1][id] / totals[1] / (counts[0][id] / totals[0]));
    // A logarithm of a count varies by 1 / sqrt(count).
    const double spread = std::sqrt(1 / counts[0][id] + 1 / counts[1][id]);
    CHECK(source.log_odds(std::array{id}) == Approx(found).margin(4.5 * spread));
  }
  CHECK(source.log_odds(std::array<std::uint32_t, 3>{0, 1, 2}) == 0);
  CHECK_THROWS_AS(source.log_odds(std::array<std::uint32_t, 1>{13}), UsageError);
}

TEST_CASE("without a tilt the two classes of reviews cannot be told apart") {
  const Optimum best = Reviews({.tilt = 0}).optimum(100, 1);
  CHECK(best.accuracy == 0.5);
  CHECK(best.loss == Approx(std::log(2.0)));
  CHECK(best.accuracy_margin == 0);
}

TEST_CASE("a chain of two characters has the entropy rate of its formula") {
  const MarkovText chain({.characters = 2, .order = 1, .contrast = 1.5});
  const double to_a = std::exp(-chain.loss(" a")), to_space = std::exp(-chain.loss("a "));
  const double a = to_a / (to_a + to_space);  // share of 'a'
  const auto entropy = [](double p) { return -p * std::log(p) - (1 - p) * std::log(1 - p); };
  CHECK(chain.optimum().loss == Approx(a * entropy(to_space) + (1 - a) * entropy(to_a)).epsilon(1e-13));
  CHECK(chain.optimum().accuracy ==
        Approx(a * std::max(to_space, 1 - to_space) + (1 - a) * std::max(to_a, 1 - to_a)).epsilon(1e-13));
  CHECK(chain.optimum().loss_margin == 0);
}

TEST_CASE("a chain's entropy rate is the mean entropy over its stationary distribution") {
  const int order = GENERATE(1, 2, 3);
  const MarkovText chain({.characters = 5, .order = order, .contrast = 2, .chain_seed = 4});
  const std::string characters = " abcd";
  std::size_t contexts = 1;
  for (int k = 0; k < order; ++k) contexts *= 5;
  std::vector<double> next(contexts * 5);
  for (std::size_t context = 0; context < contexts; ++context) {
    std::string text;
    for (std::size_t place = contexts / 5; place > 0; place /= 5) text += characters[context / place % 5];
    for (std::size_t c = 0; c < 5; ++c) next[context * 5 + c] = std::exp(-chain.loss(text + characters[c]));
  }
  std::vector<double> q(contexts, 1.0 / static_cast<double>(contexts));
  for (int step = 0; step < 20000; ++step) {
    std::vector<double> after(contexts);
    for (std::size_t i = 0; i < contexts * 5; ++i) after[i % contexts] += q[i / 5] * next[i];
    q = after;
  }
  Optimum expected;
  for (std::size_t i = 0; i < contexts * 5; ++i) expected.loss -= q[i / 5] * next[i] * std::log(next[i]);
  for (std::size_t context = 0; context < contexts; ++context)
    expected.accuracy += q[context] * *std::max_element(next.begin() + static_cast<long>(context * 5),
                                                        next.begin() + static_cast<long>(context * 5 + 5));
  CHECK(chain.optimum().loss == Approx(expected.loss).epsilon(1e-11));
  CHECK(chain.optimum().accuracy == Approx(expected.accuracy).epsilon(1e-11));
}

TEST_CASE("a drawn text has the chain's entropy rate, within the variation of texts") {
  const MarkovText chain;
  double sum = 0, squares = 0;
  constexpr int texts = 30;
  for (std::uint64_t seed = 0; seed < texts; ++seed) {
    const double loss = chain.loss(chain.draw(20000, seed));
    sum += loss / texts;
    squares += loss * loss / texts;
  }
  const double spread = std::sqrt((squares - sum * sum) / (texts - 1));
  CHECK(spread < 0.01);
  CHECK(sum == Approx(chain.optimum().loss).margin(4 * spread));
}

TEST_CASE("without contrast all characters of a chain are equally likely") {
  const MarkovText chain({.characters = 8, .order = 1, .contrast = 0});
  CHECK(chain.optimum().loss == Approx(std::log(8.0)));
  CHECK(chain.optimum().accuracy == Approx(1.0 / 8));
}

TEST_CASE("synthetic sets refuse options out of range") {
  CHECK_THROWS_AS(Glyphs({.image = {1, 2, 28, 28}}), UsageError);
  CHECK_THROWS_AS(Glyphs({.image = {1, 1, 20, 28}}), UsageError);
  CHECK_THROWS_AS(Glyphs({.classes = 1}), UsageError);
  CHECK_THROWS_AS(Glyphs({.classes = 11}), UsageError);
  CHECK_THROWS_AS(Glyphs({.shift = 4}), UsageError);
  CHECK_THROWS_AS(Glyphs({.noise = 7}), UsageError);
  CHECK_THROWS_AS(Glyphs({.wrong_labels = 1}), UsageError);
  CHECK_THROWS_AS(Glyphs().draw(-1, 0), UsageError);
  CHECK_THROWS_AS(Glyphs().optimum(1, 0), UsageError);
  CHECK_THROWS_AS(Glyphs().best_on({}), UsageError);
  CHECK_THROWS_AS(Glyphs().best_on(Glyphs(Glyphs::cifar10()).draw(1, 1)), UsageError);
  CHECK_THROWS_AS(Reviews().best_on({}), UsageError);
  CHECK_THROWS_AS(Glyphs().posterior({}), UsageError);
  CHECK_THROWS_AS(Reviews({.vocabulary = 4}), UsageError);
  CHECK_THROWS_AS(Reviews({.shortest = 0}), UsageError);
  CHECK_THROWS_AS(Reviews({.shortest = 5, .longest = 4}), UsageError);
  CHECK_THROWS_AS(Reviews({.tilt = -1}), UsageError);
  CHECK_THROWS_AS(MarkovText({.characters = 1}), UsageError);
  CHECK_THROWS_AS(MarkovText({.characters = 33}), UsageError);
  CHECK_THROWS_AS(MarkovText({.characters = 32, .order = 3}), UsageError);
  CHECK_THROWS_AS(MarkovText({.order = 0}), UsageError);
  CHECK_THROWS_AS(MarkovText().loss("a"), UsageError);
  CHECK_THROWS_AS(MarkovText().loss("ab!"), UsageError);
}
