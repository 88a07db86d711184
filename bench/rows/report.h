#pragma once
// What becomes of finished rows: entries of a file, and what the screen shows of them.

#include <benchmark/benchmark.h>

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "bench/io/result_file.h"
#include "entries.h"
#include "runner.h"

namespace lamina::bench {

/// Tells whatever keeps or shows rows which runs the library has finished. Runs of passes that never were are left out;
/// of each row's failed ones the first is told.
class Report final : public benchmark::BenchmarkReporter {
 public:
  using Begin = std::function<void(const Context&)>;
  /// Takes a run, or a statistic, with the passes of each run that it is of; none: it failed.
  using Take = std::function<void(const Run&, const Row&, const Outcome&, const Runs&)>;

  Report(const Runner& runner, Take take, Begin begin)
      : runner_(&runner), take_(std::move(take)), begin_(std::move(begin)) {}

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;

 private:
  const Runner* runner_;
  Take take_;
  Begin begin_;
  bool has_passes_ = false;  ///< not where the library reports aggregates alone
};

/// The table of the published form: one line per network and backend, means over the passes.
class Table {
 public:
  std::string header() const;
  /// Takes the rows as they finish; gives the line of the network when its total (or its failure) is known, else
  /// nothing.
  std::string take(const Row&, const Outcome&);

 private:
  std::set<const Group*> taken_;
};

/// Adds an entry of each run.
Report file_report(const Runner&, ResultFile&);
/// Lets a reporter of the library print runs, with the counters that people look at. `same_counters`: CSV, whose lines
/// all have the same columns.
Report text_report(const Runner&, benchmark::BenchmarkReporter& by, bool same_counters);
/// Prints the table of the published form.
Report table_report(const Runner&);

}  // namespace lamina::bench
