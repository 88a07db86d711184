#pragma once
// What becomes of finished rows: a file of Google Benchmark's form, and lines on the screen.

#include <benchmark/benchmark.h>

#include <map>
#include <string>
#include <vector>

#include "io/result_file.h"
#include "progress.h"
#include "rows.h"
#include "table.h"

namespace lamina::bench {

class Report final : public benchmark::BenchmarkReporter {
 public:
  /// `rows` are those that were registered, in that order. With a table, its lines are shown instead of one line per
  /// row.
  Report(const std::vector<Row>& rows, ResultFile& file, Screen screen, Table* table, Progress& progress);

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;

 private:
  void show(const Row&);

  const std::vector<Row>* rows_;
  std::map<std::string, std::string> refused_;  ///< by backend: the last refusal shown
  std::size_t name_width_ = 0;
  ResultFile* file_;
  Screen screen_;
  Table* table_;
  Progress* progress_;
};

}  // namespace lamina::bench
