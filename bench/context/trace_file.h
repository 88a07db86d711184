#pragma once
// A trace in the format that Perfetto and chrome://tracing open. They show processes below one another, with lanes.

#include <filesystem>
#include <string>

#include "bench/io/result_file.h"
#include "bench/machine/backends.h"

namespace lamina::bench {

class TraceFile {
 public:
  int add_process(const std::string& name);  ///< gives its number, by which viewers sort
  void add_lane(int process, int lane, const std::string& name);
  /// An event with its time in seconds, and fields of its own.
  void add(int process, int lane, const std::string& name, double start, double seconds, Json more);
  void add_bytes(int process, const std::string& name, double time, std::size_t bytes);  ///< bytes from this time on
  const Json& events() const { return events_; }
  void append(Json events);  ///< events of another trace
  /// Writes the file with the context of the run. Throws FileError.
  void save(const std::filesystem::path&, Backends&) const;

 private:
  void name(const char* what, int process, int lane, const char* argument, const Json& value);

  Json events_ = Json::array();
  int processes_ = 0;
};

}  // namespace lamina::bench
