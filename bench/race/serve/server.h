#pragma once
// The child's side of every race between processes: what it runs, and the requests that it answers.

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/timing/samples.h"
#include "lamina/device.h"
#include "lamina/error.h"
#include "lamina/op.h"

namespace lamina::bench {

/// What a child was asked for, ready to be run again and again.
class Served {
 public:
  virtual ~Served() = default;
  virtual void warm_up() = 0;
  virtual nlohmann::json facts() const = 0;  ///< what is known of it
  virtual nlohmann::json pass() = 0;         ///< one timed pass: seconds by the device's timer and of processor time
  /// What one run computes.
  virtual std::vector<float> result() { throw UsageError("numbers of networks are compared by tests/torch"); }
};

/// Makes what the words of a request name: a network's mode or a layer's pass, then what a side has of it (a layout, an
/// algorithm), then a convolution's numbers. Throws Unsupported where the side has none such.
using Open = std::function<std::unique_ptr<Served>(const std::string& what, const std::string& variant,
                                                   const std::string& numbers)>;

/// Writes the greeting and then one line of JSON for each line of standard input:
///   open   WHAT VARIANT [NUMBERS]   makes it and warms it up; answers what is known of it
///   pass   WHAT VARIANT [NUMBERS]   answers the seconds of one pass
///   facts  WHAT VARIANT [NUMBERS]   makes it; answers what is known of it
///   result WHAT VARIANT [NUMBERS]   answers the numbers that one run computes
///   list   NET BATCH                answers the network's convolutions, in order
///   state                           answers the device's clock, temperature and power, and what holds the clock down
///   drop                            gives back all memory
/// What cannot be done here is answered with "error" and "refused". Returns at the end of the input. Throws whatever
/// else Open throws; UsageError for any other line.
void serve(const nlohmann::json& greeting, const Open&, Device* device = nullptr);

/// Adds a sample to an answer.
void put(nlohmann::json& answer, const std::string& what, const Sample&);

}  // namespace lamina::bench
