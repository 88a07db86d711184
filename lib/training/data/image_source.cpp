// Images as samples: bytes to f32, moved and flipped at random.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "lamina/batches.h"
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

}  // namespace

std::unique_ptr<Source> image_source(ImageSet set, ImageOptions options) {
  return std::make_unique<ImageSource>(std::move(set), options);
}

}  // namespace lamina
