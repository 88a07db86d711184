#pragma once
// Two sets of results, row by row: how much slower the second is, and whether that can be said. A process is one
// sample: what it found of the machine (clock, neighbours of a virtual machine, place in memory) lasts longer than its
// passes.

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lib/tune/statistics.h"
#include "run_file.h"

namespace lamina::bench {

struct CompareRules {
  double smallest = 0.02;                  ///< the change that should be found: 2 %
  std::optional<double> fail_if_slower{};  ///< the slowdown that fails: 3 %
  bool any_load = false;                   ///< judge rows that other programs disturbed, too
  bool cpu_time = false;  ///< the processor time of a pass in place of its duration; then other programs may run
};

enum class Verdict { fails, missing, slower, faster, undecided, equal };
const char* to_string(Verdict);  ///< "not decided"

/// The files of one side, one of each process.
using Processes = std::vector<RunFile>;

/// One row of both sides.
struct ComparedRow {
  std::string name;
  nlohmann::ordered_json key{};
  Verdict verdict = Verdict::undecided;
  Interval ratio{1, 1, 1};                         ///< of the second's time over the first's
  double first_seconds = 0, seconds = 0;           ///< medians of the processes' medians; 0: there are none
  std::size_t first_processes = 0, processes = 0;  ///< whose times count
  std::size_t fewest_processes = 0;                ///< of each side, below which nothing is decided
  std::size_t disturbed = 0;                       ///< of both sides, by other programs: they do not count
  double scatter = 0;    ///< of the processes: their deviation as a share of the median; 0: not known
  std::string grades{};  ///< the worst of each side: "A B"
  std::string reason{};  ///< what the verdict rests on, where that is not the interval

  bool surely_slower = false;  ///< also by an interval that is wrong fifty times less often

  /// Whether a gate of this share fails on it.
  bool is_slower_than(double share) const {
    return verdict == Verdict::slower && surely_slower && ratio.middle > 1 + share;
  }
};

struct Comparison {
  std::vector<ComparedRow> rows;  ///< what fails first, then by verdict, the greatest change first
  double level = interval_level;  ///< of each row's interval: together they hold by interval_level

  std::size_t count(Verdict) const;
  /// The processes of each side that find a change of so much in the row, or call it equal if there is none.
  std::size_t processes_wanted(const ComparedRow&, double change) const;
  std::size_t processes_wanted(double change) const;  ///< of all undecided rows; 0: there is none
  /// What fails by a limit: rows that are slower by more, that fail in the second file alone, or are missing there.
  std::vector<const ComparedRow*> failed(double limit) const;
};

/// Throws UsageError if no row is in both. Neither side may be empty.
Comparison compare(const Processes& first, const Processes& second, const CompareRules&);

}  // namespace lamina::bench
