// Samples: conversion of bytes to f32, augmentation, padding, windows of a text, the order of an epoch.

#include "lamina/data.h"
#include "tests/support/catch.h"

using namespace lamina;

namespace {

std::vector<float> sample(const Source& source, std::int64_t number, Moment moment = {}) {
  std::vector<float> x(static_cast<std::size_t>(source.shape().image()), -1.0F);
  float label = -1;
  source.write(number, moment, x, label);
  return x;
}

float label_of(const Source& source, std::int64_t number) {
  std::vector<float> x(static_cast<std::size_t>(source.shape().image()));
  float label = -1;
  source.write(number, {}, x, label);
  return label;
}

/// Images of less than 10 x 10 pixels. The byte at (h, w) of channel c is 100 c + 10 h + w.
ImageSet coordinates(const Shape& image, int count) {
  ImageSet set{.image = image, .classes = 10, .pixels = {}, .labels = {}};
  for (int i = 0; i < count; ++i) {
    for (int c = 0; c < image.c; ++c)
      for (int h = 0; h < image.h; ++h)
        for (int w = 0; w < image.w; ++w) set.pixels.push_back(static_cast<std::uint8_t>(100 * c + 10 * h + w));
    set.labels.push_back(static_cast<std::uint8_t>(i % 10));
  }
  return set;
}

/// An image of coordinates() after a shift and a flip, by the definition.
std::vector<float> moved(const Shape& image, int rows, int columns, bool flip) {
  std::vector<float> x;
  for (int c = 0; c < image.c; ++c) {
    for (int h = 0; h < image.h; ++h) {
      for (int w = 0; w < image.w; ++w) {
        const int from_h = std::clamp(h + rows, 0, image.h - 1);
        const int from_w = std::clamp((flip ? image.w - 1 - w : w) + columns, 0, image.w - 1);
        x.push_back(static_cast<float>(100 * c + 10 * from_h + from_w));
      }
    }
  }
  return x;
}

Text letters(const char* text) { return make_text(text); }

}  // namespace

TEST_CASE("a byte is divided by 255, or multiplied by the scale") {
  ImageSet set{.image = {1, 1, 1, 3}, .classes = 2, .pixels = {0, 51, 255}, .labels = {1}};
  CHECK(sample(*image_source(set), 0) == std::vector<float>{0, 51 / 255.0F, 1});
  CHECK(sample(*image_source(set, {.scale = 2}), 0) == std::vector<float>{0, 102, 510});
  CHECK(label_of(*image_source(set), 0) == 1);
  CHECK(image_source(set)->classes() == 2);
}

TEST_CASE("a shifted image repeats its edge, flipped or not") {
  const Shape image{1, 2, 9, 10};  // the largest shifts differ: 2.7 rows, 3 columns
  const auto source = image_source(coordinates(image, 400), {.scale = 1, .shift = 0.3, .flip = true});
  std::set<int> rows_seen, columns_seen, flips_seen;
  for (int i = 0; i < 400; ++i) {
    const std::vector<float> x = sample(*source, i, {.seed = 3, .epoch = 1});
    int matches = 0;
    for (int rows = -3; rows <= 3; ++rows) {
      for (int columns = -3; columns <= 3; ++columns) {
        for (const bool flip : {false, true}) {
          if (x != moved(image, rows, columns, flip)) continue;
          ++matches;
          rows_seen.insert(rows);
          columns_seen.insert(columns);
          flips_seen.insert(flip ? 1 : 0);
        }
      }
    }
    REQUIRE(matches == 1);
  }
  CHECK(rows_seen.size() == 7);
  CHECK(columns_seen.size() == 7);
  CHECK(flips_seen.size() == 2);
}

TEST_CASE("the shifts of Keras' CIFAR-10 example have the probabilities of Keras") {
  // Shifts are uniform within 3.2 and rounded: -2 to 2 with probability 1 / 6.4, -3 and 3 with 0.7 / 6.4. Flips have
  // probability 1/2.
  constexpr int count = 20000;
  ImageSet set{.image = {1, 1, 32, 32}, .classes = 1, .pixels = {}, .labels = {}};
  for (int h = 0; h < 32; ++h)
    for (int w = 0; w < 32; ++w) set.pixels.push_back(static_cast<std::uint8_t>(h == 15 ? w : 100 + h));
  set.labels = {0};
  const auto source = image_source(set, {.scale = 1, .shift = 0.1, .flip = true});
  std::map<int, int> rows, columns;
  int flips = 0, same_signs = 0;
  for (int i = 0; i < count; ++i) {
    const std::vector<float> x = sample(*source, 0, {.seed = 1, .epoch = static_cast<std::uint64_t>(i)});
    int h = 0;
    while (x[static_cast<std::size_t>(32 * h + 16)] >= 100) ++h;
    const auto at = [&](int w) { return static_cast<int>(x[static_cast<std::size_t>(32 * h + w)]); };
    const bool flipped = at(10) > at(11);
    const int column = at(16) - (flipped ? 15 : 16);
    ++rows[15 - h];
    ++columns[column];
    flips += flipped ? 1 : 0;
    same_signs += (15 - h) * column > 0 ? 1 : 0;
  }
  // The margin is five standard deviations of a count.
  const auto near = [](double p) { return Approx(count * p).margin(5 * std::sqrt(count * p * (1 - p))); };
  for (const auto& counted : {rows, columns}) {
    CHECK(counted.size() == 7);
    for (int shift = -2; shift <= 2; ++shift) CHECK(counted.at(shift) == near(1 / 6.4));
    for (const int shift : {-3, 3}) CHECK(counted.at(shift) == near(0.7 / 6.4));
  }
  CHECK(flips == near(0.5));
  const double nonzero = 1 - 1 / 6.4;
  CHECK(same_signs == near(nonzero * nonzero / 2));  // rows and columns are independent
}

TEST_CASE("an augmentation is a function of seed, epoch and sample") {
  const ImageSet set = coordinates({1, 1, 9, 9}, 40);  // the same image 40 times
  const auto source = image_source(set, {.shift = 0.4, .flip = true});
  const auto twenty = [&](const Source& from, std::int64_t first, Moment moment) {
    std::vector<std::vector<float>> all;
    for (std::int64_t i = first; i < first + 20; ++i) all.push_back(sample(from, i, moment));
    return all;
  };
  const auto images = twenty(*source, 0, {.seed = 5, .epoch = 2});
  CHECK(twenty(*image_source(set, {.shift = 0.4, .flip = true}), 0, {.seed = 5, .epoch = 2}) == images);
  CHECK(twenty(*source, 20, {.seed = 5, .epoch = 2}) != images);
  CHECK(twenty(*source, 0, {.seed = 5, .epoch = 3}) != images);
  CHECK(twenty(*source, 0, {.seed = 6, .epoch = 2}) != images);
}

TEST_CASE("image sources refuse inconsistent sets, and shifts outside 0 to 1") {
  const ImageSet good = coordinates({1, 1, 2, 2}, 2);
  CHECK_THROWS_AS(image_source({}), UsageError);
  CHECK_THROWS_AS(image_source(good, {.shift = -0.1}), UsageError);
  CHECK_THROWS_AS(image_source(good, {.shift = 1.1}), UsageError);
  CHECK_THROWS_AS(image_source(good, {.scale = INFINITY}), UsageError);
  ImageSet bad = good;
  bad.pixels.pop_back();
  CHECK_THROWS_AS(image_source(bad), UsageError);
  bad = good;
  bad.labels.pop_back();
  CHECK_THROWS_AS(image_source(bad), UsageError);
  bad = good;
  bad.labels[0] = 10;
  CHECK_THROWS_AS(image_source(bad), UsageError);
}

TEST_CASE("short lists of ids are padded with zeros in front, and long lists keep their last ids") {
  IdSet set;
  set.vocabulary = 1U << 24;
  set.append(std::vector<std::uint32_t>{1, (1U << 24) - 1}, 1);
  set.append(std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6}, 0);
  set.append(std::vector<std::uint32_t>{}, 0);
  const auto source = id_source(set, 3);
  CHECK(source->shape() == Shape{1, 1, 3, 1});
  CHECK(sample(*source, 0) == std::vector<float>{0, 1, 16777215});
  CHECK(sample(*source, 1) == std::vector<float>{4, 5, 6});
  CHECK(sample(*source, 2) == std::vector<float>{0, 0, 0});
  CHECK(label_of(*source, 0) == 1);
  CHECK_THROWS_AS(id_source(set, 0), UsageError);
  CHECK_THROWS_AS(id_source({}, 3), UsageError);
  set.vocabulary += 1;
  CHECK_THROWS_AS(id_source(set, 3), UsageError);
  set.vocabulary = 7;
  CHECK_THROWS_AS(id_source(set, 3), UsageError);
}

TEST_CASE("a text's windows overlap by the step, and each is followed by its label") {
  const Text text = letters("abcdefgh");
  const auto source = text_source(text, {.window = 3, .step = 2});
  CHECK(source->count() == 3);  // abc with label d, cde with f, efg with h
  CHECK(source->shape() == Shape{1, 1, 3, 1});
  CHECK(source->classes() == 8);
  CHECK(sample(*source, 1) == std::vector<float>{2, 3, 4});
  CHECK(label_of(*source, 1) == 5);
  CHECK(label_of(*source, 2) == 7);
}

TEST_CASE("a text has as many windows as Keras' loop makes") {
  // Keras' loop is: for i in range(0, length - window, step). The real text has 600893 characters, which give 200285
  // windows of 40 with step 3.
  for (int length = 5; length < 20; ++length) {
    int count = 0;
    for (int i = 0; i < length - 4; i += 3) ++count;
    const std::string text(static_cast<std::size_t>(length), 'x');
    CHECK(text_source(make_text(text), {.window = 4, .step = 3})->count() == count);
  }
  CHECK(text_source(make_text(std::string(600893, 'x')))->count() == 200285);
  CHECK_THROWS_AS(text_source(letters("abcd"), {.window = 4}), UsageError);
  CHECK_THROWS_AS(text_source(letters("abcd"), {.window = 0}), UsageError);
  CHECK_THROWS_AS(text_source(letters("abcd"), {.window = 1, .step = 0}), UsageError);
}

TEST_CASE("a one-hot text has a channel for each character") {
  const auto source = text_source(letters("abca"), {.window = 3, .one_hot = true});
  CHECK(source->shape() == Shape{1, 3, 3, 1});
  CHECK(sample(*source, 0) == std::vector<float>{1, 0, 0, 0, 1, 0, 0, 0, 1});
  const auto turned = text_source(letters("cabc"), {.window = 3, .one_hot = true});
  CHECK(sample(*turned, 0) == std::vector<float>{0, 1, 0, 0, 0, 1, 1, 0, 0});
}

TEST_CASE("an epoch's order has every sample once, and is a function of seed and epoch") {
  const std::vector<std::uint32_t> order = shuffled(1000, 3, 5);
  std::vector<std::uint32_t> sorted = order;
  std::ranges::sort(sorted);
  std::vector<std::uint32_t> all(1000);
  std::iota(all.begin(), all.end(), 0U);
  CHECK(sorted == all);
  CHECK(order != all);
  CHECK(shuffled(1000, 3, 5) == order);
  CHECK(shuffled(1000, 3, 6) != order);
  CHECK(shuffled(1000, 4, 5) != order);
  CHECK(shuffled(0, 3, 5).empty());
  CHECK(shuffled(1, 3, 5) == std::vector<std::uint32_t>{0});
  CHECK_THROWS_AS(shuffled(-1, 3, 5), UsageError);
}

TEST_CASE("every order of four samples is equally likely") {
  constexpr int count = 24000;
  std::map<std::vector<std::uint32_t>, int> seen;
  for (int epoch = 0; epoch < count; ++epoch) ++seen[shuffled(4, 11, static_cast<std::uint64_t>(epoch))];
  REQUIRE(seen.size() == 24);
  double chi_square = 0;
  for (const auto& [order, times] : seen) chi_square += std::pow(times - count / 24.0, 2) / (count / 24.0);
  CHECK(chi_square < 23 + 5 * std::sqrt(2 * 23.0));  // chi square: mean 23, variance 46
}
