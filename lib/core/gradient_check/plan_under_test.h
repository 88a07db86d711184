#pragma once
// The plan whose gradients are checked, and the values that its kinks depend on.

#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kinks.h"
#include "lamina/gradient_check.h"
#include "lamina/plan.h"

namespace lamina::planner {

/// The numbers of a tensor.
std::vector<double> read_values(Device&, const Tensor&);

/// The plan under test. If it does not keep its values, a second plan provides the values before every kink.
class PlanUnderTest {
 public:
  PlanUnderTest(const Graph&, Backend&, const Options&, const GradientCheck&);

  Plan& plan() { return plan_; }

  void keep_state();  ///< stores the current state: every later run starts from it
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
