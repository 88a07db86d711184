// Texts from a Markov chain. No predictor's loss is below the chain's entropy rate.

#include <algorithm>
#include <cmath>
#include <string>

#include "lamina/error.h"
#include "lamina/random.h"
#include "lamina/synthetic.h"
#include "optimum.h"

namespace lamina {
namespace {

constexpr std::string_view characters = " abcdefghijklmnopqrstuvwxyz.,;'-";
constexpr int most_contexts = 1024;

/// The distribution q with q = q P, by Grassmann, Taksar and Heyman. States are eliminated from the last to the first;
/// the transitions of each are divided among the remaining states. Then the states are restored. The method adds
/// positive numbers only.
std::vector<double> stationary(std::vector<double> p, std::size_t n) {
  for (std::size_t k = n - 1; k > 0; --k) {
    double leaves = 0;
    for (std::size_t j = 0; j < k; ++j) leaves += p[k * n + j];
    for (std::size_t i = 0; i < k; ++i) {
      if (p[i * n + k] == 0) continue;
      p[i * n + k] /= leaves;
      for (std::size_t j = 0; j < k; ++j) p[i * n + j] += p[i * n + k] * p[k * n + j];
    }
  }
  std::vector<double> q(n);
  q[0] = 1;
  double total = 1;
  for (std::size_t k = 1; k < n; ++k) {
    for (std::size_t i = 0; i < k; ++i) q[k] += q[i] * p[i * n + k];
    total += q[k];
  }
  for (double& value : q) value /= total;
  return q;
}

}  // namespace

MarkovText::MarkovText(MarkovOptions options) : options_(options) {
  const auto wrong = [](const std::string& what) { throw UsageError("MarkovText: " + what); };
  const int count = options_.characters;
  if (count < 2 || count > static_cast<int>(characters.size()))
    wrong("characters are 2 to 32, and not " + std::to_string(count));
  if (options_.order < 1) wrong("the order is at least 1, and not " + std::to_string(options_.order));
  if (!(options_.contrast >= 0 && options_.contrast <= 10)) wrong("contrast is 0 to 10");
  contexts_ = 1;
  for (int k = 0; k < options_.order; ++k) {
    contexts_ *= count;
    if (contexts_ > most_contexts)
      wrong(std::to_string(count) + " characters of order " + std::to_string(options_.order) +
            " are more than 1024 contexts");
  }
  const auto n = static_cast<std::size_t>(contexts_), wide = static_cast<std::size_t>(count);
  next_.resize(n * wide);
  fill_normal(next_, options_.chain_seed ^ hash("chain"));
  for (double& value : next_) value = std::exp(options_.contrast * value);
  std::vector<double> transitions(n * n);  // from context to context: the oldest character leaves, the next one enters
  for (std::size_t context = 0; context < n; ++context) {
    double* const row = next_.data() + context * wide;
    double total = 0;
    for (std::size_t c = 0; c < wide; ++c) total += row[c];
    for (std::size_t c = 0; c < wide; ++c) {
      row[c] /= total;
      transitions[context * n + (context * wide + c) % n] = row[c];
    }
  }
  stationary_ = stationary(std::move(transitions), n);
}

std::string MarkovText::draw(std::int64_t length, std::uint64_t seed) const {
  check_samples(length, 0, "MarkovText::draw");
  const auto wide = static_cast<std::size_t>(options_.characters), n = static_cast<std::size_t>(contexts_);
  const auto pick = [](std::span<const double> p, double u) {
    std::size_t i = 0;
    for (; i + 1 < p.size() && u >= p[i]; ++i) u -= p[i];
    return i;
  };
  std::vector<double> uniform(static_cast<std::size_t>(length) + 1);
  fill_uniform(uniform, seed ^ hash("text"));
  std::size_t context = pick(stationary_, uniform[0]);
  std::string text;
  for (std::size_t place = n / wide; place > 0 && text.size() < static_cast<std::size_t>(length); place /= wide)
    text += characters[context / place % wide];  // the oldest character first
  while (text.size() < static_cast<std::size_t>(length)) {
    const std::size_t c = pick(std::span(next_).subspan(context * wide, wide), uniform[text.size()]);
    text += characters[c];
    context = (context * wide + c) % n;
  }
  return text;
}

Optimum MarkovText::optimum() const {
  const auto wide = static_cast<std::size_t>(options_.characters);
  Optimum best;
  for (std::size_t context = 0; context < stationary_.size(); ++context) {
    const std::span p = std::span(next_).subspan(context * wide, wide);
    best.accuracy += stationary_[context] * *std::max_element(p.begin(), p.end());
    for (const double value : p) best.loss -= stationary_[context] * value * std::log(value);
  }
  return best;
}

double MarkovText::loss(std::string_view text) const {
  const auto order = static_cast<std::size_t>(options_.order);
  const auto wide = static_cast<std::size_t>(options_.characters), n = static_cast<std::size_t>(contexts_);
  if (text.size() <= order)
    throw UsageError("MarkovText::loss: a text of " + std::to_string(text.size()) +
                     " characters has none after the first " + std::to_string(order));
  double sum = 0;
  std::size_t context = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::size_t c = characters.find(text[i]);
    if (c >= wide)
      throw UsageError("MarkovText::loss: character " + std::to_string(i) + " is not one of \"" +
                       std::string(characters.substr(0, wide)) + "\"");
    if (i >= order) sum -= std::log(next_[context * wide + c]);
    context = (context * wide + c) % n;
  }
  return sum / static_cast<double>(text.size() - order);
}

}  // namespace lamina
