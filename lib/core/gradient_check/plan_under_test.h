#pragma once
// The plan whose gradients are checked, and its kinks: points where the output has no derivative, so that a difference
// across them says nothing.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "lamina/gradient_check.h"
#include "lamina/plan.h"

namespace lamina::planner {

/// For every kink the side on which a run is, and the distance to the nearest kink.
struct Kinks {
  std::vector<std::int32_t> sides;
  double margin = std::numeric_limits<double>::infinity();
  double tie = 1e-11;  ///< values a and b that differ by at most this times max(1, |a|, |b|) count as equal: rounding
                       ///< alone makes such differences

  /// Adds the kinks of an op with inputs of these shapes. `values(i)` gives the dense numbers of input i.
  void add(const Op&, const std::vector<Shape>& x, const Shape& y,
           const std::function<std::vector<double>(std::size_t)>& values);
};

/// The numbers of a tensor.
std::vector<double> read_values(Device&, const Tensor&);

/// The plan under test. If it does not keep its values, a second plan provides the values before every kink.
class PlanUnderTest {
 public:
  PlanUnderTest(const Graph&, Backend&, const Options&, const GradientCheck&);

  Plan& plan() { return plan_; }

  void set(const std::string& name, bool is_input, const std::vector<double>&);  ///< an input or a parameter

  void forward() { run(plan_); }
  Kinks kinks();  ///< runs forward
  std::vector<double> output() { return read_values(device_, plan_.output()); }

 private:
  void run(Plan&);

  Device& device_;
  Plan plan_;
  std::unique_ptr<Plan> twin_;
  std::vector<std::pair<std::string, std::vector<std::byte>>> state_;
};

}  // namespace lamina::planner
