// Glyphs in noise, and the best possible classifier.

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <string>
#include <string_view>

#include "lamina/error.h"
#include "lamina/random.h"
#include "lamina/synthetic.h"
#include "optimum.h"

namespace lamina {
namespace {

constexpr int cell_pixels = 3, glyph_columns = 5, glyph_rows = 7;
constexpr int glyph_height = glyph_rows * cell_pixels, glyph_width = glyph_columns * cell_pixels;
constexpr int most_classes = 10;

/// Grey levels of the glyph and of the background, by channel.
constexpr std::array<std::array<double, 2>, 3> levels = {{{192, 64}, {160, 96}, {80, 144}}};

// Rows of five cells, from the top.
constexpr std::array<std::string_view, most_classes> digits = {
    " ### #   ##   ##   ##   ##   # ### ", "  #   ##    #    #    #    #   ### ",
    " ### #   #    #  ##  #   #    #####", " ### #   #    #  ##     ##   # ### ",
    "   #   ##  # # #  # #####   #    # ", "######    #### #    #    ##   # ### ",
    " ### #    #    #### #   ##   # ### ", "#####    #   #   #    #    #    #  ",
    " ### #   ##   # ### #   ##   # ### ", " ### #   ##   # ####    #    # ### "};
constexpr std::array<std::string_view, most_classes> letters = {  // A H I M O T U V W X
    " ### #   ##   #######   ##   ##   #", "#   ##   ##   #######   ##   ##   #", "#####  #    #    #    #    #  #####",
    "#   ### ### # ##   ##   ##   ##   #", " ### #   ##   ##   ##   ##   # ### ", "#####  #    #    #    #    #    #  ",
    "#   ##   ##   ##   ##   ##   # ### ", "#   ##   ##   ##   # # #  # #   #  ", "#   ##   ##   ## # ## # ### ### # #",
    "#   ##   # # #   #   # # #   ##   #"};

bool has_ink(const GlyphOptions& options, int c, int row, int column) {
  const auto& font = options.symmetric ? letters : digits;
  return font[static_cast<std::size_t>(c)][static_cast<std::size_t>(row * glyph_columns + column)] == '#';
}

/// The first row and column of a glyph that is not shifted.
int top(const GlyphOptions& options) { return (options.image.h - glyph_height) / 2; }
int left(const GlyphOptions& options) { return (options.image.w - glyph_width) / 2; }

std::span<const std::uint8_t> image_of(const ImageSet& set, std::int64_t i) {
  const auto bytes = static_cast<std::size_t>(set.image.image());
  return std::span(set.pixels).subspan(static_cast<std::size_t>(i) * bytes, bytes);
}

/// p(byte | mean) of clip(round(mean + noise z)).
double byte_probability(int byte, double mean, double noise) {
  const double low = byte == 0 ? -INFINITY : (byte - 0.5 - mean) / noise;
  const double high = byte == 255 ? INFINITY : (byte + 0.5 - mean) / noise;
  // Each tail of the normal distribution is taken on the side where it is small, so that the difference keeps its
  // digits.
  const auto tail = [](double z) { return 0.5 * std::erfc(z * std::numbers::sqrt2 / 2); };
  return low > 0 ? tail(low) - tail(high) : tail(-high) - tail(-low);
}

}  // namespace

void check_samples(std::int64_t samples, std::int64_t least, const char* what) {
  if (samples < least)
    throw UsageError(std::string(what) + ": " + std::to_string(samples) + " samples; at least " +
                     std::to_string(least) + " are needed");
}

GlyphOptions Glyphs::mnist() { return {}; }
GlyphOptions Glyphs::cifar10() { return {.image = {1, 3, 32, 32}, .symmetric = true}; }

Glyphs::Glyphs(GlyphOptions options) : options_(options) {
  const Shape& image = options_.image;
  const auto wrong = [](const std::string& what) { throw UsageError("Glyphs: " + what); };
  if (image.n != 1 || (image.c != 1 && image.c != 3))
    wrong("an image has the shape 1 x c x h x w with one channel or three, and not " + to_string(image));
  if (options_.classes < 2 || options_.classes > most_classes)
    wrong("classes are 2 to 10, and not " + std::to_string(options_.classes));
  if (options_.shift < 0 || options_.shift > std::min(top(options_), left(options_)))
    wrong("glyphs of 21 x 15 pixels shifted by " + std::to_string(options_.shift) + " do not fit into " +
          to_string(image));
  if (!(options_.noise >= 8 && options_.noise <= 1e4)) wrong("noise is 8 to 10000 grey levels");
  if (!(options_.wrong_labels >= 0 && options_.wrong_labels < 1)) wrong("wrong_labels is a probability below 1");
  for (int c = 0; c < image.c; ++c) {
    const auto [ink, background] = levels[static_cast<std::size_t>(c)];
    for (int byte = 0; byte < 256; ++byte)
      gain_.push_back(
          std::log(byte_probability(byte, ink, options_.noise) / byte_probability(byte, background, options_.noise)));
  }
}

ImageSet Glyphs::draw(std::int64_t count, std::uint64_t seed) const {
  check_samples(count, 0, "Glyphs::draw");
  const Shape& image = options_.image;
  const auto classes = static_cast<std::uint64_t>(options_.classes);
  const auto places = static_cast<std::uint64_t>(2 * options_.shift + 1);
  const auto below = [](std::uint32_t word, std::uint64_t end) { return static_cast<int>(word * end >> 32); };
  ImageSet set{.image = image, .classes = options_.classes, .pixels = {}, .labels = {}};
  set.pixels.resize(static_cast<std::size_t>(count * image.image()));
  std::vector<double> values(static_cast<std::size_t>(image.image()));
  auto to = set.pixels.begin();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto number = static_cast<std::uint64_t>(i);
    const auto words = philox(seed ^ hash("glyphs"), number, 0), label = philox(seed ^ hash("glyphs"), number, 1);
    const int c = below(words[0], classes);
    const int first_row = top(options_) - options_.shift + below(words[1], places);
    const int first_column = left(options_) - options_.shift + below(words[2], places);
    // The label is wrong with the probability of the options. Then it is any of the other classes.
    const bool is_wrong = (label[0] + 0.5) * 0x1p-32 < options_.wrong_labels;
    set.labels.push_back(
        static_cast<std::uint8_t>(is_wrong ? (c + 1 + below(label[1], classes - 1)) % options_.classes : c));

    fill_normal(values, seed ^ hash("noise"), number * values.size());
    auto z = values.begin();
    for (int channel = 0; channel < image.c; ++channel) {
      const auto [ink, background] = levels[static_cast<std::size_t>(channel)];
      for (int h = 0; h < image.h; ++h) {
        for (int w = 0; w < image.w; ++w) {
          const int row = h - first_row, column = w - first_column;
          const bool inside = row >= 0 && row < glyph_height && column >= 0 && column < glyph_width;
          const bool drawn = inside && has_ink(options_, c, row / cell_pixels, column / cell_pixels);
          const double value = (drawn ? ink : background) + options_.noise * *z++;
          *to++ = static_cast<std::uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
        }
      }
    }
  }
  return set;
}

std::vector<double> Glyphs::posterior(std::span<const std::uint8_t> bytes) const {
  const Shape& image = options_.image;
  if (bytes.size() != static_cast<std::size_t>(image.image()))
    throw UsageError("Glyphs::posterior: " + std::to_string(bytes.size()) + " bytes are not an image of " +
                     to_string(image));
  // Up to a constant, ln p(image | glyph, place) is the sum of the gains of the pixels that have ink. Cells are summed
  // first.
  const auto plane = static_cast<std::size_t>(image.plane()), width = static_cast<std::size_t>(image.w);
  std::vector<double> gains(plane), cells(plane);
  for (std::size_t i = 0; i < bytes.size(); ++i) gains[i % plane] += gain_[i / plane * 256 + bytes[i]];
  for (std::size_t h = 0; h + cell_pixels <= static_cast<std::size_t>(image.h); ++h)
    for (std::size_t w = 0; w + cell_pixels <= width; ++w)
      for (std::size_t k = 0; k < cell_pixels * cell_pixels; ++k)
        cells[h * width + w] += gains[(h + k / cell_pixels) * width + w + k % cell_pixels];
  const auto glyph_gain = [&](int c, int first_row, int first_column) {
    double sum = 0;
    for (int row = 0; row < glyph_rows; ++row) {
      for (int column = 0; column < glyph_columns; ++column) {
        if (!has_ink(options_, c, row, column)) continue;
        sum += cells[static_cast<std::size_t>((first_row + row * cell_pixels) * image.w + first_column +
                                              column * cell_pixels)];
      }
    }
    return sum;
  };
  std::vector<double> logs;
  for (int c = 0; c < options_.classes; ++c)
    for (int a = -options_.shift; a <= options_.shift; ++a)
      for (int b = -options_.shift; b <= options_.shift; ++b)
        logs.push_back(glyph_gain(c, top(options_) + a, left(options_) + b));
  const double largest = *std::max_element(logs.begin(), logs.end());
  const std::size_t places = logs.size() / static_cast<std::size_t>(options_.classes);
  std::vector<double> p(static_cast<std::size_t>(options_.classes));
  double total = 0;
  for (std::size_t i = 0; i < logs.size(); ++i) {
    const double likelihood = std::exp(logs[i] - largest);
    p[i / places] += likelihood;
    total += likelihood;
  }
  const double others = options_.wrong_labels / (options_.classes - 1);
  for (double& value : p) {
    value /= total;
    value = (1 - options_.wrong_labels) * value + others * (1 - value);
  }
  return p;
}

Optimum Glyphs::optimum(std::int64_t samples, std::uint64_t seed) const {
  check_samples(samples, 2, "Glyphs::optimum");
  const ImageSet set = draw(samples, seed);
  return estimated_optimum(samples, [&](std::int64_t i) { return posterior(image_of(set, i)); });
}

Optimum Glyphs::best_on(const ImageSet& set) const {
  check_samples(set.count(), 1, "Glyphs::best_on");
  if (set.image != options_.image)
    throw UsageError("Glyphs::best_on: images of " + to_string(set.image) + "; these glyphs are " +
                     to_string(options_.image));
  return reached_optimum(set.labels, [&](std::int64_t i) { return posterior(image_of(set, i)); });
}

}  // namespace lamina
