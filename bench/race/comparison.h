#pragma once
// What may be said of one row that several variants (versions of a library, builds of the program) ran in turns: equal,
// slower, faster, and by what a slowdown is explained.

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lamina::bench {

/// What one process, one round of a variant, has to say of a row.
struct Observation {
  double seconds = 0;     ///< least of its passes, which others only disturb; of a setup/ row the first
  double memory_MiB = 0;  ///< what the plan holds, workspace included; 0: not known
  std::string algorithm;  ///< that the variant picked, where it says so
  std::string failure;    ///< why there is no time
};

/// Of one variant, by name of the row, then by round; a round that did not get that far has none.
using Observations = std::map<std::string, std::vector<std::optional<Observation>>>;

enum class Verdict { equal, slower, faster, undecided, fails, no_longer_fails, fails_in_both };
std::string_view to_string(Verdict);

/// How a row differs in a variant from the same row in the first one.
struct Difference {
  std::string row;
  Verdict verdict = Verdict::undecided;
  double ratio = 1, low = 1, high = 1;          ///< time over the first variant's, with its interval
  double seconds = 0, first_seconds = 0;        ///< medians over the rounds
  double memory_MiB = 0, first_memory_MiB = 0;  ///< of the last round
  std::string algorithm, first_algorithm;
  std::string label;     ///< of a regression: "pick", "kernel", "memory", "first call", "layers"; else empty
  std::string evidence;  ///< the figures behind the label
};

/// Ratio of medians that counts as a difference only beyond this, however narrow the interval.
constexpr double least_difference = 0.02;

/// The interval of the ratio covers its true value with this probability, were rounds drawn from a normal distribution
/// of logarithms: t quantiles of the paired rounds.
constexpr double confidence = 0.99;

/// Mean of log(b / a) over rounds that have both, and half the width of its interval; nothing for fewer than three
/// rounds.
struct LogRatio {
  double mean, half_width;
};
std::optional<LogRatio> log_ratio(const std::vector<double>& a, const std::vector<double>& b);

/// Every row of `first` or `other`, in the order of names, judged and labelled.
///
/// A row is slower or faster where the interval of its ratio excludes 1 and the ratio differs from 1 by more than
/// `least_difference`. A regression's label: "first call" for a setup/ row; "pick" for a layer's default row where the
/// algorithm that was picked differs, and the fastest of the layer's named algorithms did not get slower; "kernel" for
/// a named algorithm, or a default row whose fastest algorithm got slower too; "layers" for a network some of whose
/// layers' rows (of its backend, type, layout, batch and pass; the default ones where there are any) got slower, which
/// the evidence names with their labels; "memory" for a row that needs over 1 % more, whatever its time.
std::vector<Difference> compare(const Observations& first, const Observations& other);

}  // namespace lamina::bench
