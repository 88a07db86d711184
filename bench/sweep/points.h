#pragma once
// The points of a sweep. Each point is measured, or taken from the file of an earlier, unfinished sweep. The file keeps
// all points.

#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "answers.h"
#include "bench/compare/run_file.h"
#include "bench/context/context.h"
#include "bench/rows/meter.h"
#include "sweep.h"

namespace lamina::bench {

/// The settings that all points of a series share. The batch is 0.
struct Series : Config {
  int image;
};

std::string to_string(const Series&);  ///< "resnet18 on eigen, f32 nchw, image 64"

int all_threads();  ///< number of all processors, independent of --threads

class SweepPoints {
 public:
  /// Reads the file of an earlier sweep, if there is one. Throws UsageError if the file is of another sweep or another
  /// machine, and FileError.
  SweepPoints(const SweepOptions&, const MakeBackend&);

  Backends& backends() { return base_->session.backends; }
  Session& session(const Series& series) { return setting_of(series, 0).session; }
  std::size_t limit_of(const Series&) const;  ///< the memory limit of the series' plans, in bytes
  /// The facts of a series: its key without a batch, and the command that sweeps it again.
  Json entry_of(const Series&) const;

  /// Announces a point, so that the progress knows the time left. `threads` 0: the number of threads of the options.
  void announce(const Series&, int batch, int threads);
  void begin();                             ///< call it when all points are announced, before measuring
  void withdraw(const Series&, int batch);  ///< withdraws the announced points of this batch and of larger batches
  /// Measures a point, unless the file has it. The result has neither times nor a failure after an interrupt.
  SweepPoint point(const Series&, int batch, int threads);

  ResultFile& file() { return file_; }
  void finish() { bench::finish(file_, base_->session.peaks); }
  std::string table() const { return table_.text(); }
  bool any_measured() const { return any_measured_; }

 private:
  /// A session for one number of threads and one image size. Rows point to its options.
  struct Setting {
    Setting(const RunOptions& its, const MakeBackend& make, Progress& progress)
        : options(its), session(options, make), meter(session, options, progress) {}
    RunOptions options;
    Session session;
    Meter meter;
  };

  void go_on(const RunFile& before);
  std::string settings() const;
  Setting& setting_for(int threads, int image, bool gpu);
  Setting& setting_of(const Series&, int threads);
  PlanningSettings settings_of(const Series&) const;
  std::vector<Row> rows_of(const Series&, int batch, int threads);
  void measure(const std::vector<Row>&, Meter&);

  const SweepOptions& options_;
  const MakeBackend& make_;
  ResultFile file_;
  std::map<std::tuple<int, int, bool>, std::unique_ptr<Setting>> made_;
  Setting* base_ = nullptr;
  std::size_t limit_ = 0;                ///< limit of plans on the processor, in bytes
  std::map<std::string, RunRow> known_;  ///< {name: row} of all rows in the file
  std::set<std::string> shown_;          ///< names of points in the table
  TextTable table_{{"network", ">batch", ">threads", ">ms", "interval", ">ms per image", ">images/s", "note"}};
  std::vector<Row> announced_;  ///< rows of the points that will be measured
  Progress progress_;
  int number_ = 0;  ///< number of points that were measured so far
  bool any_measured_ = false;
};

}  // namespace lamina::bench
