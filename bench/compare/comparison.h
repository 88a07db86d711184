#pragma once
// The subcommand `compare`: two sets of results, row by row, as a table and as JSON. It says how much slower the second
// set is, and whether there are enough samples to be sure. With a limit, the comparison fails if a row is slower by
// more than the limit. A set is the results of separate processes, or one variant of a file whose variants took turns.
// A process counts as one sample, because its conditions (clock, neighbours of a virtual machine, place in memory) last
// longer than its passes. For variants, a round is one sample.

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "bench/io/text.h"
#include "lamina/statistics.h"
#include "run_file.h"

namespace lamina::bench {

struct CompareRules {
  double smallest = 0.02;                  ///< change that should be found
  std::optional<double> fail_if_slower{};  ///< slowdown above which a row fails
  bool any_load = false;                   ///< whether to judge rows that other programs disturbed, too
  bool cpu_time = false;  ///< whether to compare processor time in place of duration; other programs may then run
};

/// The share of all processors above which the load of other programs decides the time.
constexpr double max_foreign_load = 0.15;

/// The least ratio between the closest samples of both sides at which a row is slower or faster without an interval.
/// The times of equal processes on a virtual machine were seen to differ by a factor of 2.1.
constexpr double far_apart = 3;

enum class Verdict { fails, missing, slower, faster, inconclusive, equal };
const char* to_string(Verdict);

/// The verdict: equal if the whole interval is within `smallest` of 1; slower or faster if the interval is on one side
/// of 1 and the ratio differs from 1 by more than half of `smallest`.
Verdict judge(const Interval& ratio, double smallest);

/// The files of a side, one for each process.
using Processes = std::vector<RunFile>;

/// A row that at least one side has.
struct ComparedRow {
  std::string name;
  Json key{};
  std::string first{}, second{};  ///< names of the sides
  std::string fastest{};          ///< variant that `first` stands for if it is "fastest"
  Verdict verdict = Verdict::inconclusive;
  Interval ratio{1, 1, 1};                         ///< ratio of the second's time to the first's
  double first_seconds = 0, seconds = 0;           ///< medians of the samples; 0: there are none
  std::size_t first_processes = 0, processes = 0;  ///< processes whose times count; for variants both count rounds
  std::size_t fewest_processes = 0;                ///< processes of each side that an interval needs
  std::size_t disturbed = 0;                       ///< samples of both sides that other programs disturbed
  double scatter = 0;  ///< deviation of the processes' times or rounds' ratios, as a share of the median; 0: not known
  std::string grades{};  ///< worst grade of each side: "A B"
  std::string reason{};  ///< basis of the verdict if this is not the interval; another algorithm; more memory
  std::string rerun{};   ///< command that measures the second's row again
  std::vector<std::pair<std::int64_t, double>> round_ratios{};  ///< ratio of each round that both variants have

  /// Whether the row fails the gate: the ratio is above the limit and, besides, the interval at the gate's level is
  /// above 1 or the closest samples are far apart.
  bool beyond_gate = false;

  std::size_t missing_processes() const;  ///< number of processes of each side that are still needed for an interval
  bool is_undecided() const { return verdict == Verdict::inconclusive && missing_processes() > 0; }
  bool is_whole() const;  ///< whether the row is of a whole network, not of a layer
  bool is_layer() const { return key.contains("layer"); }
};

/// The geometric mean over networks of a pass's ratios. Its interval comes from the geometric mean of each round.
struct MeanRatio {
  std::string part, type, first, second;
  std::size_t networks = 0;
  double ratio = 1;
  std::optional<Interval> interval{};  ///< none if the networks have fewer than `fewest_samples` rounds in common
};

struct Comparison {
  std::vector<ComparedRow> rows;   ///< rows of a pair in the order of Verdict, the greatest change first
  std::vector<MeanRatio> means{};  ///< means of variants that took turns, if there are several networks
  double level = interval_level;   ///< level of each interval; for processes, all together have interval_level
  bool paired = false;

  std::size_t count(Verdict) const;
  /// The number of processes of each side, or of rounds, that would show whether the row has changed by `change` or
  /// more. 0: not known, because variants have no round in common, or the
  /// row is missing or failed.
  std::size_t processes_wanted(const ComparedRow&, double change) const;
  std::size_t processes_wanted(double change) const;  ///< the largest of all inconclusive rows; 0: no row needs more
  /// The rows that fail the gate: slower by more than the limit, failed in the second set alone, or missing there.
  std::vector<const ComparedRow*> failed() const;
};

/// Throws UsageError if no row is in both sets. Neither set may be empty.
Comparison compare(const Processes& first, const Processes& second, const CompareRules&);

/// Compares variants that took turns. Without subjects, each variant is compared with the first variant of the file.
/// With subjects, each subject is compared with every variant that is not a subject. If there are several others, it is
/// also compared, in each row, with the fastest other variant. Throws UsageError for a subject that is no variant, and
/// if no row is in two variants.
Comparison compare_paired(const std::vector<Variant>&, const std::vector<std::string>& subjects, const CompareRules&);

struct CompareOptions {
  std::filesystem::path first{}, second{};  ///< files, or folders with a file of each process
  std::filesystem::path paired{};           ///< file with variants that took turns, in place of `first` and `second`
  std::vector<std::string> subjects{};      ///< variants in `paired` to compare with all others
  CompareRules rules{};
  bool other_machine = false;  ///< whether to compare files of different machines or numbers of threads
  Format format = Format::text;
  std::filesystem::path out{};  ///< JSON file of the comparison, which may be `paired` itself; empty: none
};

/// The exit status of a comparison with a limit if a row is slower by more than the limit, fails, or is missing.
constexpr int slower_status = 3;
/// The exit status of a comparison with a limit if no row fails, but some rows have too few samples to be judged.
constexpr int undecided_status = 4;

/// Prints the comparison and gives the exit status. Throws FileError for files that cannot be read or written, and
/// UsageError for files that cannot be compared.
int compare_files(const CompareOptions&, const Print&);

}  // namespace lamina::bench
