#pragma once
// A trace in the format of Perfetto and chrome://tracing. These viewers show a list of processes, each with lanes.

#include <filesystem>
#include <string>

#include "bench/io/result_file.h"
#include "bench/machine/backends.h"

namespace lamina::bench {

class TraceFile {
 public:
  int add_process(const std::string& title);  ///< gives the number of the process; viewers sort by it
  void add_lane(int process, int lane, const std::string& title);
  /// Adds an event. Times are in seconds; `more` has further fields.
  void add(int process, int lane, const std::string& what, double start, double seconds, Json more);
  void add_bytes(int process, const std::string& what, double time,
                 std::size_t bytes);  ///< bytes in use from `time` on
  const Json& events() const { return events_; }
  void append(Json events);  ///< adds the events of another trace
  /// Writes the trace, with the context of the run, to a file. Throws FileError.
  void save(const std::filesystem::path&, Backends&) const;

 private:
  void name(const char* what, int process, int lane, const char* argument, const Json& value);

  Json events_ = Json::array();
  int processes_ = 0;
};

}  // namespace lamina::bench
