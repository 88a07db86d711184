#pragma once
// The subcommand `sweep`: networks at many batches, numbers of threads, image sizes, types, layouts and backends, as
// rows of one file that a later call with the same flags completes. The points of a sweep and their series: measured,
// or taken from the file that an earlier sweep left.

#include <cstddef>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "answers.h"
#include "bench/compare/run_file.h"
#include "bench/io/result_file.h"
#include "bench/io/text.h"
#include "bench/machine/backends.h"
#include "bench/measure/session.h"
#include "bench/rows/meter.h"
#include "bench/rows/rows.h"

namespace lamina::bench {

struct SweepOptions : RunOptions {
  SweepOptions() { configs.batches.clear(); }  // empty: doubled until out of memory

  std::vector<int> thread_counts{};  ///< numbers of threads; empty: doubled, up to all
  std::vector<int> images{};         ///< rows and columns of images; empty: those of --image
  double longest_pass = 20;          ///< most seconds of a pass: larger batches are left out, and named
};

/// The settings that all points of a question share.
struct Series {
  std::string network, backend;
  DType dtype;
  Layout layout;
  int image;

  Config config(int batch) const { return {network, backend, dtype, layout, batch}; }
};

/// "resnet18 on eigen, f32 nchw, image 64".
std::string to_string(const Series&);

class SweepRunner {
 public:
  /// Reads the file of an earlier sweep. Throws UsageError unless it is of this sweep on this machine, and FileError.
  /// The options and the function that makes backends must outlive it.
  SweepRunner(const SweepOptions&, const MakeBackend&);

  /// A session with one number of threads and size: rows point to it.
  struct Setting {
    Setting(const RunOptions& its, const MakeBackend& make, Progress& progress)
        : options(its), session(options, make), meter(session, options, progress) {}
    RunOptions options;
    Session session;
    Meter meter;
  };
  Setting& setting_of(const Series&, int threads = 0);
  std::vector<std::string> backends() { return base_->session.backends.names(); }

  /// The limit of plans on the processor, in bytes.
  std::size_t memory_limit() const { return limit_; }

  /// Announces points, so that the progress knows the time left. `threads` 0: the options' number.
  void plan(const Series&, const std::vector<SweepPoint>&);
  /// Announces that all points are planned.
  void begin() { progress_ = Progress(base_->session.peaks, planned_, options_.passes); }
  /// Withdraws the points of this batch and of larger batches.
  void leave_out(const Series&, int batch);
  /// Measures it now unless the file has it. Without times or failure: interrupted.
  SweepPoint point(const Series&, int batch, int threads);

  /// The command that sweeps the series again, with `more` flags.
  std::string rerun_of(const Series&, const std::vector<std::string>& more) const;

  /// Keeps in the file that a series has no points, and why.
  void add_unplanned(nlohmann::ordered_json entry);

  const TextTable& table() const { return table_; }  ///< table of the requested points
  bool any_measured() const { return measured_; }
  /// Writes the file. Throws FileError.
  void finish(const nlohmann::ordered_json& answers);

 private:
  Setting& setting_for(int threads, int image, bool gpu);
  bool limit_by_user() const;
  std::string settings() const;  ///< settings that a file must share to be completed
  void go_on(const RunFile& before);
  std::vector<Row> rows_of(Setting&, const Series&, int batch, int threads);
  std::string rerun_of_point(const Series&, const Row&, int threads) const;
  void measure(const std::vector<Row>&, Setting&, int passes);

  const SweepOptions& options_;
  const MakeBackend& make_;
  bool measured_ = false;
  ResultFile file_;
  std::map<std::tuple<int, int, bool>, std::unique_ptr<Setting>> settings_;
  Setting* base_ = nullptr;
  std::map<std::string, RunRow> known_;  ///< rows of the file, by name
  TextTable table_{{"network", ">batch", ">threads", ">ms", "interval", ">ms per image", ">images/s", "note"}};
  std::set<std::string> shown_;  ///< names of points in the table
  std::size_t limit_ = 0;
  std::vector<Row> planned_;        ///< rows of the points that will be measured
  std::set<std::string> left_out_;  ///< names of planned rows that will not be measured after all
  Progress progress_;
  int number_ = 0;  ///< number of the point that is measured
};

/// Takes all processors, whatever --threads says.
int all_threads();

/// Runs the points that the file lacks, prints all points and the answers, and gives the exit status. A series that
/// cannot be planned is left out, and named on standard error, in the print and in the file. If no series is left,
/// there is no file. Throws UsageError for names and flags that do not fit, before anything is measured, and for a
/// file of other settings, and FileError.
int sweep(const SweepOptions&, const MakeBackend&, const Print&);

}  // namespace lamina::bench
