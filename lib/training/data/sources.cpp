// Sets as samples: images as f32, moved and flipped at random; lists of ids of one length; windows of a text, each with
// the character that follows.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "lamina/data.h"
#include "lamina/error.h"
#include "lamina/random.h"
#include "sets.h"

namespace lamina {
namespace {

/// A shift: uniform within `reach` of zero, rounded to the nearest whole number.
int move_by(std::uint32_t word, double reach) {
  const double uniform = (static_cast<double>(word) + 0.5) * 0x1p-32;  // inside (0, 1)
  return static_cast<int>(std::floor((2 * uniform - 1) * reach + 0.5));
}

class ImageSource final : public Source {
 public:
  ImageSource(ImageSet set, ImageOptions options) : set_(std::move(set)), options_(options) {
    check(set_, "image_source");
    if (set_.labels.empty()) throw UsageError("image_source: the set has no images");
    if (!(options_.shift >= 0 && options_.shift <= 1))
      throw UsageError("image_source: shift is a share of the image, from 0 to 1, and not " +
                       std::to_string(options_.shift));
    if (!std::isfinite(options_.scale)) throw UsageError("image_source: the scale is not finite");
    for (std::size_t byte = 0; byte < as_float_.size(); ++byte)
      as_float_[byte] = static_cast<float>(static_cast<double>(byte) * options_.scale);
  }

  std::int64_t count() const override { return set_.count(); }
  Shape shape() const override { return set_.image; }
  int classes() const override { return set_.classes; }

  void write(std::int64_t sample, Moment moment, std::span<float> x, float& label) const override {
    label = set_.labels[static_cast<std::size_t>(sample)];
    const Shape& image = set_.image;
    const std::uint8_t* from = set_.pixels.data() + sample * image.image();
    if (options_.shift == 0 && !options_.flip) {
      for (float& value : x) value = as_float_[*from++];
      return;
    }
    static constexpr std::uint64_t stream = hash("augment");
    const auto words = philox(moment.seed ^ stream, static_cast<std::uint64_t>(sample), moment.epoch);
    const int rows = move_by(words[0], options_.shift * image.h);
    const int columns = move_by(words[1], options_.shift * image.w);
    const bool flipped = options_.flip && (words[2] & 1) != 0;
    float* to = x.data();
    for (int c = 0; c < image.c; ++c, from += image.plane()) {
      for (int h = 0; h < image.h; ++h) {
        const std::uint8_t* const row = from + std::int64_t{std::clamp(h + rows, 0, image.h - 1)} * image.w;
        for (int w = 0; w < image.w; ++w) {
          const int column = (flipped ? image.w - 1 - w : w) + columns;
          *to++ = as_float_[row[std::clamp(column, 0, image.w - 1)]];
        }
      }
    }
  }

 private:
  ImageSet set_;
  ImageOptions options_;
  std::array<float, 256> as_float_{};
};

constexpr std::uint32_t most_ids = 1U << 24;  // every whole number up to it is exact in f32

/// Keeps the last ids and puts zeros in front.
void pad(std::span<const std::uint32_t> ids, std::span<float> out) {
  const std::size_t kept = std::min(ids.size(), out.size());
  const auto zeros = static_cast<std::ptrdiff_t>(out.size() - kept);
  std::fill(out.begin(), out.begin() + zeros, 0.0F);
  std::transform(ids.end() - static_cast<std::ptrdiff_t>(kept), ids.end(), out.begin() + zeros,
                 [](std::uint32_t id) { return static_cast<float>(id); });
}

class ListSource final : public Source {
 public:
  ListSource(IdSet set, int length) : set_(std::move(set)), length_(length) {
    check(set_, "id_source");
    if (set_.labels.empty()) throw UsageError("id_source: the set has no lists");
    if (length_ < 1) throw UsageError("id_source: the length is " + std::to_string(length_) + "; at least 1 is needed");
    if (set_.vocabulary > most_ids)
      throw UsageError("id_source: the vocabulary has " + std::to_string(set_.vocabulary) +
                       " ids; up to 2^24 are exact in f32");
  }

  std::int64_t count() const override { return set_.count(); }
  Shape shape() const override { return {1, 1, length_, 1}; }
  int classes() const override { return set_.classes; }

  void write(std::int64_t sample, Moment, std::span<float> x, float& label) const override {
    label = set_.labels[static_cast<std::size_t>(sample)];
    pad(set_.list(sample), x);
  }

 private:
  IdSet set_;
  int length_;
};

class TextSource final : public Source {
 public:
  TextSource(Text text, TextOptions options) : text_(std::move(text)), options_(options) {
    if (options_.window < 1 || options_.step < 1)
      throw UsageError("text_source: window and step are at least 1, and not " + std::to_string(options_.window) +
                       " and " + std::to_string(options_.step));
    const auto length = static_cast<std::int64_t>(text_.ids.size());
    if (length <= options_.window)
      throw UsageError("text_source: a text of " + std::to_string(length) + " characters is shorter than a window of " +
                       std::to_string(options_.window) +
                       " and the character after it; give a longer text, or a smaller window");
    for (const std::uint32_t id : text_.ids)
      if (id >= text_.alphabet.size())
        throw UsageError("text_source: the id " + std::to_string(id) + " is not below " +
                         std::to_string(text_.alphabet.size()) + ", the characters of the alphabet");
    count_ = (length - options_.window - 1) / options_.step + 1;
  }

  std::int64_t count() const override { return count_; }
  Shape shape() const override { return {1, options_.one_hot ? classes() : 1, options_.window, 1}; }
  int classes() const override { return static_cast<int>(text_.alphabet.size()); }

  void write(std::int64_t sample, Moment, std::span<float> x, float& label) const override {
    const auto window = static_cast<std::size_t>(options_.window);
    const std::uint32_t* const from = text_.ids.data() + sample * options_.step;
    label = static_cast<float>(from[window]);
    if (!options_.one_hot) {
      std::transform(from, from + window, x.begin(), [](std::uint32_t id) { return static_cast<float>(id); });
      return;
    }
    std::fill(x.begin(), x.end(), 0.0F);
    for (std::size_t t = 0; t < window; ++t) x[from[t] * window + t] = 1;
  }

 private:
  Text text_;
  TextOptions options_;
  std::int64_t count_ = 0;
};

}  // namespace

std::unique_ptr<Source> image_source(ImageSet set, ImageOptions options) {
  return std::make_unique<ImageSource>(std::move(set), options);
}

std::unique_ptr<Source> id_source(IdSet set, int length) {
  return std::make_unique<ListSource>(std::move(set), length);
}

std::unique_ptr<Source> text_source(Text text, TextOptions options) {
  return std::make_unique<TextSource>(std::move(text), options);
}

}  // namespace lamina
