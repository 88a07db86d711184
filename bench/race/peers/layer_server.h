#pragma once
// What the children of `compare --layers` share: how a convolution is spelled, what is in its tensors, how a pass of it
// is sampled, and how requests are answered.

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lamina/op.h"

namespace peers {

struct Convolution {
  lamina::Shape x;
  lamina::Conv op;
};

/// "16 64 56 56 128 3 3 1 1 1 1 1 1 1 0": n c h w, k r s, then stride, pad and dilation by rows and columns, groups,
/// bias.
std::string spell(const Convolution&);

/// Seconds by the wall and by the process's CPU clock.
struct Sample {
  double seconds = 0, cpu_seconds = 0;
};

/// The time since it was made.
class Stopwatch {
 public:
  Stopwatch();
  Sample elapsed() const;

 private:
  double start_, cpu_start_;
};

/// One pass of a convolution, ready to be run again and again. Parameter gradients are overwritten.
class TimedPass {
 public:
  virtual ~TimedPass() = default;
  virtual std::string implementation() const = 0;
  virtual Sample run() = 0;
  /// What the last run computed, in order n c h w: y, or dx, or dw and the bias's gradient behind it.
  virtual std::vector<float> result() = 0;
};

/// x, w, bias and dy of either side: small whole numbers, whose sums are exact in f32. They depend on the tensor's name
/// alone.
std::vector<float> numbers(std::int64_t count, const std::string& tensor);

/// Makes a pass in one of a side's own variants (a layout, an algorithm). Throws lamina::Unsupported where it has none.
using Open = std::function<std::unique_ptr<TimedPass>(const Convolution&, lamina::Pass, const std::string& variant)>;

/// Writes the greeting and then one line of JSON for each line of standard input:
///   open   PASS VARIANT CONVOLUTION   makes it and runs it once; answers its implementation, or why there is none
///   pass   PASS VARIANT CONVOLUTION   answers seconds of one run; of a short pass, their mean over runs back to back
///   result PASS VARIANT CONVOLUTION   answers the numbers that one run computes
///   drop                              gives back all memory
/// Returns at the end of the input. Throws what Open throws, but for Unsupported; UsageError for any other line.
void serve(const nlohmann::json& greeting, const Open&);

}  // namespace peers
