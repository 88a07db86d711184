#pragma once
// What becomes of finished rows: Google Benchmark's own JSON, collected in a file, and lines on the screen.

#include <benchmark/benchmark.h>

#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "io/result_file.h"
#include "progress.h"
#include "rows.h"
#include "table.h"

namespace lamina::bench {

class Report final : public benchmark::BenchmarkReporter {
 public:
  /// With a table, its lines are shown instead of one line per row.
  Report(const std::vector<Row>& rows, ResultFile& file, Screen screen, Table* table, Progress& progress);

  bool ReportContext(const Context&) override;
  void ReportRuns(const std::vector<Run>&) override;

 private:
  /// The run under its documented name, with the time that the processors spent in its sample.
  Run documented(const Run&, const Row&) const;
  std::vector<Run> worth_keeping(const std::vector<Run>&, const Row&) const;
  nlohmann::ordered_json as_json(const std::vector<Run>&);
  void show(const Row&);

  std::map<std::string, const Row*> rows_;
  std::map<std::string, std::string> refused_;  ///< by backend: the last refusal shown
  std::size_t name_width_ = 0;
  ResultFile* file_;
  Screen screen_;
  Table* table_;
  Progress* progress_;
  std::ostringstream text_;  ///< what the library's JSON reporter writes
  benchmark::JSONReporter json_;
};

}  // namespace lamina::bench
