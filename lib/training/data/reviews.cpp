// Reviews of independent words, and the likelihood ratio that separates their classes.

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "lamina/error.h"
#include "lamina/random.h"
#include "lamina/synthetic.h"
#include "optimum.h"

namespace lamina {
namespace {

constexpr std::uint32_t start_id = 1, first_word = 3;
constexpr std::uint64_t counters_per_review = 1U << 15;  // more than the longest review needs

/// A uniform number in (0, 1), from 53 bits of two words.
double uniform(std::uint32_t high, std::uint32_t low) {
  const std::uint64_t bits = (std::uint64_t{high} << 21) ^ (low >> 11);
  return (static_cast<double>(bits) + 0.5) * 0x1p-53;
}

}  // namespace

Reviews::Reviews(ReviewOptions options) : options_(options) {
  const auto wrong = [](const std::string& what) { throw UsageError("Reviews: " + what); };
  if (options_.vocabulary < first_word + 2)
    wrong("the vocabulary needs 5 ids or more: three with a meaning, two words");
  if (options_.vocabulary > 1U << 24) wrong("the vocabulary has at most 2^24 ids");
  if (options_.shortest < 1 || options_.longest < options_.shortest || options_.longest > 65534)
    wrong("lengths are 1 to 65534, the shortest first, and not " + std::to_string(options_.shortest) + " to " +
          std::to_string(options_.longest));
  if (!(options_.tilt >= 0 && options_.tilt <= 10)) wrong("tilt is 0 to 10");
  std::vector<double> t(options_.vocabulary - first_word);
  fill_normal(t, options_.words_seed ^ hash("tilt"));
  std::array<double, 2> total{};
  for (std::size_t i = 0; i < t.size(); ++i) {
    for (std::size_t c = 0; c < 2; ++c) {
      total[c] += std::exp((c == 1 ? 1 : -1) * options_.tilt * t[i]) / static_cast<double>(i + 1);
      cumulative_[c].push_back(total[c]);
    }
  }
  for (std::size_t c = 0; c < 2; ++c)
    for (double& sum : cumulative_[c]) sum /= total[c];
  for (const double value : t) ratio_.push_back(2 * options_.tilt * value - std::log(total[1] / total[0]));
}

IdSet Reviews::draw(std::int64_t count, std::uint64_t seed) const {
  check_samples(count, 0, "Reviews::draw");
  IdSet set;
  set.vocabulary = options_.vocabulary;
  const auto lengths = static_cast<std::uint64_t>(options_.longest - options_.shortest + 1);
  std::vector<std::uint32_t> review;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::uint64_t first = static_cast<std::uint64_t>(i) * counters_per_review;
    const auto words = [&](std::uint64_t k) { return philox(seed ^ hash("reviews"), first + k, 0); };
    const auto head = words(0);
    const std::size_t c = head[0] & 1;
    const auto length = static_cast<std::size_t>(options_.shortest) + static_cast<std::size_t>(head[1] * lengths >> 32);
    review.assign(1, start_id);
    for (std::size_t k = 0; k < length; ++k) {
      const auto four = words(1 + k / 2);
      const double u = k % 2 == 0 ? uniform(four[0], four[1]) : uniform(four[2], four[3]);
      const auto at = std::upper_bound(cumulative_[c].begin(), cumulative_[c].end() - 1, u);
      review.push_back(first_word + static_cast<std::uint32_t>(at - cumulative_[c].begin()));
    }
    set.append(review, static_cast<std::uint8_t>(c));
  }
  return set;
}

double Reviews::log_odds(std::span<const std::uint32_t> ids) const {
  double sum = 0;
  for (const std::uint32_t id : ids) {
    if (id >= options_.vocabulary)
      throw UsageError("Reviews::log_odds: the id " + std::to_string(id) + " is not below the vocabulary, " +
                       std::to_string(options_.vocabulary));
    if (id >= first_word) sum += ratio_[id - first_word];
  }
  return sum;
}

Optimum Reviews::optimum(std::int64_t samples, std::uint64_t seed) const {
  check_samples(samples, 2, "Reviews::optimum");
  const IdSet set = draw(samples, seed);
  return estimated_optimum(samples, [&](std::int64_t i) {
    const double p = 1 / (1 + std::exp(-log_odds(set.list(i))));
    return std::array{1 - p, p};
  });
}

Optimum Reviews::best_on(const IdSet& set) const {
  check_samples(set.count(), 1, "Reviews::best_on");
  return reached_optimum(set.labels, [&](std::int64_t i) {
    const double odds = log_odds(set.list(i));
    return std::array{1 / (1 + std::exp(odds)), 1 / (1 + std::exp(-odds))};
  });
}

}  // namespace lamina
