#pragma once
// What becomes of finished rows: a file of Google Benchmark's form, and lines on the screen.

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "bench/io/result_file.h"
#include "bench/rows/runner.h"
#include "progress.h"
#include "table.h"

namespace lamina::bench {

class Report final : public benchmark::BenchmarkReporter {
 public:
  /// With a table, its lines are shown instead of one line per row.
  Report(const Runner&, ResultFile&, Screen, Table*, Progress&);

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;

 private:
  void show(const Row&, const Outcome&);

  const Runner* runner_;
  std::map<std::string, std::string> refused_;  ///< by backend: the last refusal shown
  std::size_t name_width_ = 0;
  ResultFile* file_;
  Screen screen_;
  Table* table_;
  Progress* progress_;
};

}  // namespace lamina::bench
