#pragma once
// Rows: their options, the measurements that give their times, and the filter that picks rows by name.
// The subcommand `run`: runs the picked rows with Google Benchmark, and writes their file and table.

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/row_key.h"
#include "bench/timing/machine_watch.h"

namespace lamina::bench {

/// The options of `run`. Without names of networks, the filter picks among the rows of all networks; without a filter,
/// the rows of the ten networks of the published tables are picked.
struct RunOptions : TaskOptions {
  double noise = 0;     ///< wanted half-width of the median's interval, as a share of the median; 0: not given
  double min_time = 0;  ///< least seconds of a run; with `noise`, most seconds of a measurement; 0: not given
  bool list = false;    ///< whether to print only the names of the rows
  std::optional<std::string> filter{};
  std::filesystem::path trace{};  ///< trace file of the passes; empty: none
  Screen out_format = Screen::json, screen = Screen::console;
  std::string time_unit{};  ///< unit of all rows; empty: by the kind of the row
  bool table = false;       ///< whether to print the table of the published form
  bool quick = false;       ///< whether to run only three networks
};

/// For each name, whether the filter picks the row. The filter is a std::regex that matches any part of a name. After a
/// "-", it picks the rows whose names do not match. "all" picks every row. Throws UsageError for a bad expression, if
/// there are no rows, and if no row is picked; the text then has the nearest names and `left_out`.
std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter,
                       const std::string& left_out = {});

/// The networks that are run if neither a name nor a filter is given: the ten of cnn-benchmarks or, if `quick`, three.
std::vector<std::string> default_networks(bool quick);
/// The filter that is used if none is given.
std::string default_filter(const RunOptions&);

/// The work of a pass of a row, for the counters beside its time.
struct Work {
  double images = 0;
  double flops = 0;
  double bytes = 0;  ///< bytes moved, if each call moves each of its tensors once; 0: not known
};

/// A measurement whose passes give the times of a row for each part: forward, backward and total of a network.
struct Group {
  std::string title;  ///< human-readable title of the rows: "resnet50 on eigen"
  Config config;
  std::vector<std::string> parts;
  std::vector<Work> work;     ///< work of all ranks, by part
  double flops_per_pass = 0;  ///< operations of a whole pass of one rank, to predict the time
  int ranks = 1;              ///< number of ranks that share the work
  int layers = 0;             ///< number of layers of the network with this spec; 0: the group is not of a layer
  std::function<std::unique_ptr<TimedRun>()> open;
};

struct Row {
  std::string name;  ///< name, made of the key
  std::shared_ptr<const Group> group;
  std::size_t part;
  RowKey key{};
  std::string rerun{};  ///< command that measures the row again

  const Work& work() const { return group->work[part]; }
};

/// The kind of a failed group: not supported, out of memory, or anything else.
enum class Failure { failed, unsupported, out_of_memory };

/// The result of measuring a group.
struct Outcome {
  explicit Outcome(std::size_t parts = 0) : samples(parts), wanted(parts), last_wanted(parts) {}

  std::vector<std::vector<Sample>> samples;  ///< samples by part, then by pass
  std::vector<std::size_t> wanted;           ///< number of passes that Google Benchmark's runs wanted, by part
  std::vector<std::size_t> last_wanted;      ///< number of passes that the last run wanted, by part
  std::vector<double> bytes{};               ///< bytes of the plan's calls by part; empty: use the bytes of Work
  MemoryReport memory{};
  std::map<std::string, double> counters{};  ///< counters of the measurement
  std::string note, algorithm;
  double peak_flops_per_second = 0;              ///< peak of the backend and type; 0: not known
  Conditions conditions{};                       ///< conditions of the machine during the measurement
  std::string failure;                           ///< reason why there are no further passes; begins with its kind
  Failure kind = Failure::failed;                ///< kind of the failure, if there is one
  std::size_t wanted_bytes = 0, free_bytes = 0;  ///< bytes of an out-of-memory failure, as far as known
};

/// Outcomes by group.
using Outcomes = std::map<const Group*, Outcome>;

/// All rows of the options: of every network on every backend, with every batch, type and layout. Rows of networks come
/// first, then rows of layers. Session and options must outlive the rows. `left_out` gets the networks for which
/// --image is too small or too large, and a note that several ranks have only rows of whole networks in training.
/// Throws what making a network of the options throws.
std::vector<Row> all_rows(Session&, const RunOptions&, std::string* left_out = nullptr);

std::vector<Row> net_rows(Session&, const RunOptions&, const Config&);
std::vector<Row> layer_rows(Session&, const RunOptions&, const Config&);

/// Makes a row for each part of the group. `key` gives the key of a part's row.
std::vector<Row> rows_of(Group, const RunOptions&, const std::function<RowKey(std::string_view part)>& key);

/// Runs the rows, or prints their names. Throws UsageError, FileError. Gives the exit status.
int run_rows(const RunOptions&, const MakeBackend&);

}  // namespace lamina::bench
