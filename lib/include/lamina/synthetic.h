#pragma once
// Data sets made by formula, in the formats of the real ones, whose best possible loss and accuracy are known: for
// training where the real files are not.
//
// Loss is the mean of -ln p(label), in nats. Every set is a function of its options and a seed.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/data.h"

namespace lamina {

/// What the best classifier, which knows how the data was made, reaches on new samples. A margin is half the width of a
/// 99 % confidence interval; 0: the value is exact to rounding.
struct Optimum {
  double accuracy = 0, accuracy_margin = 0;
  double loss = 0, loss_margin = 0;
};

// ---- Images ---------------------------------------------------------------------------------------------------------

struct GlyphOptions {
  Shape image{1, 1, 28, 28};  ///< of one channel, or of three
  int classes = 10;           ///< 2 to 10
  /// false: digits. true: letters that are their own mirror images, for training with flips.
  bool symmetric = false;
  int shift = 2;               ///< the glyph lies up to so many rows and columns from the middle, each place as likely
  double noise = 40;           ///< standard deviation of the normal noise on each byte, in grey levels; at least 16
  double wrong_labels = 0.05;  ///< probability that a label is one of the other classes, each as likely; below 1
};

/// Glyphs of 5 x 7 cells, each of 3 x 3 pixels, on a plain background, with noise, rounded and clipped to bytes.
///
///     class c, rows a, columns b uniform;  byte = clip(round(mean(c, a, b) + noise z), 0, 255),  z normal
///
/// Bytes are independent given (c, a, b), and the probability of each is a difference of two normal distribution
/// functions. So the posterior is a sum over all places, exactly:
///
///     p(c | image) ~ sum over a, b of product over pixels of p(byte | mean(c, a, b))
class LAMINA_API Glyphs {
 public:
  /// Throws UsageError: options out of range, or an image in which a shifted glyph has no room.
  explicit Glyphs(GlyphOptions = {});
  static GlyphOptions mnist();    ///< 1 x 28 x 28 digits
  static GlyphOptions cifar10();  ///< 3 x 32 x 32 symmetric letters

  const GlyphOptions& options() const { return options_; }
  ImageSet draw(std::int64_t count, std::uint64_t seed) const;

  /// p(label | image) for each label, which takes the wrong labels into account. Bytes in the order c, h, w.
  std::vector<double> posterior(std::span<const std::uint8_t> image) const;

  /// Accuracy: mean of the largest posterior. Loss: mean entropy of the posterior. Over `samples` images of that seed.
  Optimum optimum(std::int64_t samples, std::uint64_t seed) const;

 private:
  GlyphOptions options_;
  std::vector<double> gain_;  ///< ln p(byte | ink) - ln p(byte | background): by channel, then by byte
};

// ---- Reviews
// ---------------------------------------------------------------------------------------------------------

struct ReviewOptions {
  std::uint32_t vocabulary = 2000;  ///< ids: 0 padding, 1 start, 2 unknown, words from 3
  int shortest = 20, longest = 79;  ///< words of a review, each count as likely; the start mark comes first
  double tilt = 0.2;                ///< how far the two classes' words differ: standard deviation of t
  std::uint64_t words_seed = 1;     ///< of t: it makes the two distributions, not the reviews
};

/// Lists of words drawn independently from one of two distributions, a fair coin saying which:
///
///     p(w | class) = exp((class ? 1 : -1) t(w)) / (w - 2) / Z(class),  t normal with standard deviation `tilt`
///
/// The best classifier is the likelihood ratio: ln p(1 | review) - ln p(0 | review) = sum of ln p(w | 1) / p(w | 0).
class LAMINA_API Reviews {
 public:
  explicit Reviews(ReviewOptions = {});  ///< throws UsageError: options out of range
  const ReviewOptions& options() const { return options_; }
  IdSet draw(std::int64_t count, std::uint64_t seed) const;

  /// ln p(1 | ids) - ln p(0 | ids). Ids below 3 count nothing. Throws UsageError for one beyond the vocabulary.
  double log_odds(std::span<const std::uint32_t> ids) const;

  /// As of Glyphs. It holds for a reader of whole reviews: pad to longest + 1 or more.
  Optimum optimum(std::int64_t samples, std::uint64_t seed) const;

 private:
  ReviewOptions options_;
  std::vector<double> cumulative_[2];  ///< by word, of each class; the last is 1
  std::vector<double> ratio_;          ///< ln p(w | 1) / p(w | 0), by word
};

// ---- Text -----------------------------------------------------------------------------------------------------------

struct MarkovOptions {
  int characters = 8;            ///< 2 to 32: the first of " abcdefghijklmnopqrstuvwxyz.,;'-"
  int order = 2;                 ///< characters that the next one depends on: 1 or more, characters^order <= 1024
  double contrast = 2;           ///< how unequal the probabilities are
  std::uint64_t chain_seed = 1;  ///< of the probabilities, not of the text
};

/// A text whose next character depends on the `order` before it and nothing else:
///
///     p(c | context) = exp(contrast z(context, c)) / Z(context),  z normal
///
/// With q the stationary distribution of contexts, the least loss of any predictor that sees at least `order`
/// characters is the entropy rate, - sum q(context) p(c | context) ln p(c | context).
class LAMINA_API MarkovText {
 public:
  explicit MarkovText(MarkovOptions = {});  ///< throws UsageError: options out of range
  const MarkovOptions& options() const { return options_; }

  std::string draw(std::int64_t length, std::uint64_t seed) const;  ///< its first context is drawn from q

  /// Exact: entropy rate, and the mean of the largest p(c | context). q is solved for by Grassmann, Taksar and Heyman's
  /// elimination (Operations Research 33, 1985), which subtracts nothing, and so loses no digits.
  Optimum optimum() const;

  /// The true chain's loss on a text: mean of -ln p over the characters after the first `order`. Throws UsageError for
  /// other characters, or a text that is too short.
  double loss(std::string_view text) const;

 private:
  MarkovOptions options_;
  int contexts_ = 0;
  std::vector<double> next_;        ///< p(c | context), context by context
  std::vector<double> stationary_;  ///< q
};

}  // namespace lamina
