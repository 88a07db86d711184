// Windows of a text as samples, each with the character that follows.

#include <algorithm>
#include <string>

#include "lamina/batches.h"
#include "lamina/error.h"

namespace lamina {
namespace {

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

std::unique_ptr<Source> text_source(Text text, TextOptions options) {
  return std::make_unique<TextSource>(std::move(text), options);
}

}  // namespace lamina
