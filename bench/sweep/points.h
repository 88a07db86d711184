#pragma once
// The points of a sweep and their series: measured, or taken from the file that an earlier sweep left.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "answers.h"
#include "bench/compare/run_file.h"
#include "bench/io/result_file.h"
#include "bench/measure/session.h"
#include "bench/rows/progress.h"
#include "sweep.h"

namespace lamina::bench {

/// What is the same for all points of a question that a sweep asks.
struct Series {
  std::string network, backend;
  DType dtype;
  Layout layout;
  int image;

  Config config(int batch) const { return {network, backend, dtype, layout, batch}; }
};

/// "resnet18 on eigen, f32 nchw, image 64".
std::string to_string(const Series&);

/// A point with the series that it belongs to.
struct SweptPoint {
  Series series;
  SweepPoint point;
};

class SweepRunner final : public Watcher {
 public:
  /// Reads the file of an earlier sweep. Throws UsageError unless it is of this sweep on this machine, and FileError.
  /// The options and what makes backends must outlive it.
  SweepRunner(const SweepOptions&, const MakeBackend&);

  /// A session with one number of threads and size: rows point to it.
  struct Setting {
    Setting(const RunOptions& its, const MakeBackend& make, Watcher& watcher)
        : options(its), session(options, make), meter(session, options, watcher) {}
    RunOptions options;
    Session session;
    Meter meter;
  };
  Setting& setting_of(const Series&, int threads = 0);
  std::vector<std::string> backends() { return base_->session.backends.names(); }

  /// The limit of plans on the processor, in bytes.
  std::size_t memory_limit() const { return limit_; }

  /// Says that points will be asked for, so that the progress knows the time left. `threads` 0: as the options have
  /// them.
  void plan(const Series&, const std::vector<SweepPoint>&);
  /// Says that points of this batch and of larger ones will not be asked for.
  void leave_out(const Series&, int batch);
  /// Measures it now unless the file has it. Without times or failure: interrupted.
  SweepPoint point(const Series&, int batch, int threads);

  /// The command that sweeps the series again, with `more` flags.
  std::string rerun_of(const Series&, const std::vector<std::string>& more) const;

  /// Keeps in the file that a series has no points, and why.
  void add_unplanned(nlohmann::ordered_json entry);

  const std::vector<SweptPoint>& all() const { return table_; }  ///< that were asked for
  bool any_measured() const { return measured_; }
  /// Writes the file. Throws FileError.
  void finish(const nlohmann::ordered_json& answers);

 private:
  Setting& setting_for(int threads, int image, bool gpu);
  bool limit_by_user() const;
  std::string settings() const;  ///< on what a file must agree to be gone on with
  void go_on(const RunFile& before);
  std::vector<Row> rows_of(Setting&, const Series&, int batch, int threads);
  std::string rerun_of_point(const Series&, const Row&, int threads) const;
  void measure(const std::vector<Row>&, Setting&, int passes);
  Progress& progress();
  void show(const Row& row, int pass, int passes) override { progress().show(row, pass, passes); }
  void pass_done(const Group& group) override { progress().pass_done(group); }
  void group_failed(const Group& group, int passes_left) override { progress().group_failed(group, passes_left); }

  const SweepOptions& options_;
  const MakeBackend& make_;
  bool measured_ = false;
  ResultFile file_;
  std::map<std::tuple<int, int, bool>, std::unique_ptr<Setting>> settings_;
  Setting* base_ = nullptr;
  std::map<std::string, RunRow> known_;  ///< rows of the file, by name
  std::vector<SweptPoint> table_;
  std::set<std::string> shown_;  ///< whose points are in the table
  std::size_t limit_ = 0;
  std::vector<Row> planned_;            ///< a row of each point that will be measured
  std::set<std::string> left_out_;      ///< names of those that will not, after all
  std::optional<Progress> progress_{};  ///< none before the first point
  int number_ = 0;                      ///< number of the point that is measured
};

/// Takes all processors, whatever --threads says.
int all_threads();

}  // namespace lamina::bench
