// A trace for Perfetto and chrome://tracing.

#include "trace_file.h"

#include <cmath>
#include <utility>

#include "context.h"

namespace lamina::bench {
namespace {

/// The difference of two times in microseconds, the unit of the format. Both times are rounded to whole nanoseconds
/// first, as viewers round them. So no call seems to begin before the previous one has ended; viewers drop such calls.
double microseconds(double from, double to) { return (std::round(1e9 * to) - std::round(1e9 * from)) / 1e3; }

}  // namespace

void TraceFile::name(const char* what, int process, int lane, const char* argument, const Json& value) {
  Json event = {{"ph", "M"}, {"name", what}, {"pid", process}};
  if (lane >= 0) event["tid"] = lane;
  event["args"] = {{argument, value}};
  events_.push_back(std::move(event));
}

int TraceFile::add_process(const std::string& title) {
  name("process_name", ++processes_, -1, "name", title);
  name("process_sort_index", processes_, -1, "sort_index", processes_);
  return processes_;
}

void TraceFile::add_lane(int process, int lane, const std::string& title) {
  name("thread_name", process, lane, "name", title);
  name("thread_sort_index", process, lane, "sort_index", lane);
}

void TraceFile::add(int process, int lane, const std::string& what, double start, double seconds, Json more) {
  more.update({{"ph", "X"},
               {"name", what},
               {"ts", microseconds(0, start)},
               {"dur", microseconds(start, start + seconds)},
               {"pid", process},
               {"tid", lane}});
  events_.push_back(std::move(more));
}

void TraceFile::add_bytes(int process, const std::string& what, double time, std::size_t bytes) {
  events_.push_back(
      {{"ph", "C"}, {"name", what}, {"ts", microseconds(0, time)}, {"pid", process}, {"args", {{"bytes", bytes}}}});
}

void TraceFile::append(Json events) {
  for (Json& event : events) events_.push_back(std::move(event));
}

void TraceFile::save(const std::filesystem::path& path, Backends& backends) const {
  const Json trace = {{"displayTimeUnit", "ms"}, {"otherData", start_context(backends)}, {"traceEvents", events_}};
  replace_file(path, trace.dump() + "\n");
}

}  // namespace lamina::bench
