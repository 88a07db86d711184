#pragma once
// A plan that is timed pass by pass, alive while its rows run.

#include <map>
#include <string>
#include <vector>

#include "bench/timing/stopwatch.h"
#include "lamina/plan.h"

namespace lamina::bench {

/// By std::chrono::steady_clock, in seconds.
struct Span {
  std::string what;
  double begin, end;
  bool is_sum = false;
};

class TimedRun {
 public:
  virtual ~TimedRun() = default;
  virtual std::vector<Sample> pass() = 0;  ///< one pass: a sample for each part
  virtual const Plan& plan() const = 0;
  virtual std::vector<double> bytes() const { return {}; }               ///< by part, where the plan's calls have them
  virtual std::map<std::string, double> counters() const { return {}; }  ///< beside the time; in place of others' names
  virtual std::vector<Span> spans() const { return {}; }  ///< of this rank's last timed pass of a network
  virtual std::string note() const { return {}; }         ///< what the rows have to say of themselves
  virtual std::string algorithm() const { return {}; }    ///< that was taken, where there is one
};

}  // namespace lamina::bench
