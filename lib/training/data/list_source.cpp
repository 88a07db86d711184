// Lists of ids as samples of one length.

#include <algorithm>
#include <string>

#include "lamina/batches.h"
#include "lamina/error.h"
#include "sets.h"

namespace lamina {
namespace {

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

}  // namespace

std::unique_ptr<Source> id_source(IdSet set, int length) {
  return std::make_unique<ListSource>(std::move(set), length);
}

}  // namespace lamina
