#pragma once
// Rows, and the measurements that feed them.

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "measure/names.h"
#include "measure/samples.h"
#include "measure/workshop.h"
#include "options/options.h"

namespace lamina::bench {

/// What one pass of a row did, for the counters beside its time.
struct Work {
  double images = 0;
  double flops = 0;
  double bytes = 0;  ///< every tensor once per call; 0: not known
};

/// A plan (or what makes one) that is timed: alive while its rows run.
class Measurement {
 public:
  virtual ~Measurement() = default;
  virtual std::vector<Sample> pass() = 0;  ///< one pass: a sample for each part
  virtual MemoryReport memory() const = 0;
  virtual std::vector<double> bytes() const { return {}; }               ///< by part, where the plan's calls tell
  virtual std::map<std::string, double> counters() const { return {}; }  ///< beside the time; in place of others' names
  virtual std::string note() const { return {}; }                        ///< what the rows have to say of themselves
  virtual std::string algorithm() const { return {}; }                   ///< that was taken, where there is one
};

/// Rows that one pass feeds: forward, backward and total of a network.
struct Group {
  std::string title;  ///< of its rows, for people: "resnet50 on eigen"
  Case facts;
  std::vector<std::string> parts;
  std::vector<Work> work;     ///< by part
  double flops_per_pass = 0;  ///< of the whole pass, for the time it will take
  bool first_calls = false;   ///< of a process: nothing may run before that is not such a group
  int layers = 0;             ///< how many layers of the network have this spec; 0: not a layer
  std::function<std::unique_ptr<Measurement>()> open;

  std::vector<std::vector<Sample>> samples;  ///< by part, then pass
  MemoryReport memory{};
  std::map<std::string, double> counters{};  ///< of the measurement
  std::string note, algorithm;
  double peak_flops = 0;     ///< of the backend and type, per second; 0: not known
  std::string failure;       ///< why it could not be measured, kind first
  bool unsupported = false;  ///< and that is rightly so
};

struct Row {
  std::string name;  ///< of the key
  std::shared_ptr<Group> group;
  std::size_t part;
  RowKey key{};
};

/// Every row of every network on every backend, batch, type and layout that the options name, those of first calls
/// before the others; touches no device.
/// Needs `workshop` alive while rows run.
std::vector<Row> all_rows(Workshop& workshop);

/// Throws UsageError for a file, of weights or of choices, that none of the rows would look at.
void check_files_are_used(const std::vector<Row>&, const Settings&);

std::vector<Row> net_rows(Workshop&, const Case&);
std::vector<Row> layer_rows(Workshop&, const Case&);
std::vector<Row> setup_rows(Workshop&, const Case&);

/// Makes a row of each part.
std::vector<Row> rows_of(const std::shared_ptr<Group>&, const std::function<RowKey(std::string_view part)>& key);

}  // namespace lamina::bench
