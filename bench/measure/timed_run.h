#pragma once
// A plan that is timed pass by pass, alive while its rows run.

#include <map>
#include <string>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/plan.h"

namespace lamina::bench {

/// A span of std::chrono::steady_clock, in seconds.
struct Span {
  std::string what;
  double begin, end;
  bool is_sum = false;
};

class TimedRun {
 public:
  virtual ~TimedRun() = default;
  virtual std::vector<Sample> pass() = 0;  ///< runs one pass; gives a sample for each part
  virtual const Plan& plan() const = 0;
  virtual std::vector<double> bytes() const { return {}; }  ///< bytes by part, if the plan's calls have them
  /// Counters, which replace others of the same name.
  virtual std::map<std::string, double> counters() const { return {}; }
  virtual std::vector<Span> spans() const { return {}; }  ///< spans of this rank's last timed pass of a network
  virtual std::string note() const { return {}; }         ///< text about the rows
  virtual std::string algorithm() const { return {}; }    ///< algorithm that was taken, if there is one
};

}  // namespace lamina::bench
