#pragma once
// Rows: what the user asked for, the measurements that feed them, and the filter that picks from their names.
// The subcommand `run`: the rows that a filter picks, under Google Benchmark, with their file and table.

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

/// The options of `run`. Without names of networks: all networks that a filter names, or the ten of the published
/// tables.
struct RunOptions : TaskOptions {
  double noise = 0;     ///< half-width of the median's interval to reach, as a share of the median; 0: none
  double min_time = 0;  ///< seconds of a run, or with `noise` the most of a measurement; 0: not given
  bool list = false;    ///< whether to print only the names of the rows
  std::optional<std::string> filter{};
  std::filesystem::path trace{};  ///< trace file of the passes; empty: none
  Screen out_format = Screen::json, screen = Screen::console;
  std::string time_unit{};  ///< unit of all rows; empty: by the kind of the row
  bool table = false;       ///< whether to print the table of the published form
  bool quick = false;       ///< whether to run only three networks
};

/// For each name, whether the expression picks the row. It is a std::regex, found anywhere in the name; after a "-" it
/// picks the rows whose names lack it; "all" picks every row. Throws UsageError for a bad expression, for one that
/// picks nothing, with the nearest names and then `left_out`, and if there are no rows.
std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter,
                       const std::string& left_out = {});

/// The networks that are run when neither a name nor a filter is given: the ten of cnn-benchmarks, or three.
std::vector<std::string> default_networks(bool quick);
/// The expression of the rows that are run, or listed, without a filter.
std::string default_filter(const RunOptions&);

/// The work of a pass of a row, for the counters beside its time.
struct Work {
  double images = 0;
  double flops = 0;
  double bytes = 0;  ///< bytes, with every tensor once per call; 0: not known
};

/// A measurement whose passes feed a row for each part: forward, backward and total of a network.
struct Group {
  std::string title;  ///< title of its rows, for people: "resnet50 on eigen"
  Config config;
  std::vector<std::string> parts;
  std::vector<Work> work;     ///< work of all ranks, by part
  double flops_per_pass = 0;  ///< operations of a whole pass of one rank, to predict its time
  int ranks = 1;              ///< ranks that share the work; the peak beside a sample is that of one rank
  int layers = 0;             ///< layers of the network with this spec; 0: not a layer
  std::function<std::unique_ptr<TimedRun>()> open;
};

struct Row {
  std::string name;  ///< name, made from the key
  std::shared_ptr<const Group> group;
  std::size_t part;
  RowKey key{};
  std::string rerun{};  ///< command that measures it again

  const Work& work() const { return group->work[part]; }
};

/// The kind of a failed group: not supported, out of memory, or anything else.
enum class Failure { failed, unsupported, out_of_memory };

/// The result of measuring a group.
struct Outcome {
  explicit Outcome(std::size_t parts = 0) : samples(parts) {}

  std::vector<std::vector<Sample>> samples;  ///< samples by part, then by pass
  std::vector<double> bytes{};               ///< bytes of the plan's calls by part; empty: those of Work
  MemoryReport memory{};
  std::map<std::string, double> counters{};  ///< counters of the measurement
  std::string note, algorithm;
  double peak_flops_per_second = 0;              ///< peak of the backend and type; 0: not known
  Conditions conditions{};                       ///< conditions of the machine meanwhile
  std::string failure;                           ///< reason why it could not be measured; begins with its kind
  Failure kind = Failure::failed;                ///< kind of that failure
  std::size_t wanted_bytes = 0, free_bytes = 0;  ///< bytes of an out-of-memory failure, as far as known
};

/// Outcomes by group.
using Outcomes = std::map<const Group*, Outcome>;

/// Every row of every network on every backend, batch, type and layout that the options name: rows of networks first,
/// then those of layers. Session and options must outlive the rows. `left_out` gets the networks that --image is too
/// small or too large for, and a note that several ranks have only the rows of a training.
/// Throws what a network of the options throws.
std::vector<Row> all_rows(Session&, const RunOptions&, std::string* left_out = nullptr);

std::vector<Row> net_rows(Session&, const RunOptions&, const Config&);
std::vector<Row> layer_rows(Session&, const RunOptions&, const Config&);

/// Makes a row for each part.
std::vector<Row> rows_of(Group, const RunOptions&, const std::function<RowKey(std::string_view part)>& key);

/// Runs the rows, or prints their names. Throws UsageError, FileError. Gives the exit status.
int run_rows(const RunOptions&, const MakeBackend&);

}  // namespace lamina::bench
