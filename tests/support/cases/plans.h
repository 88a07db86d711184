#pragma once
// Plans as tests see them: their numbers on the host, whole nets composed by hand, two plans side by side.

#include <functional>
#include <string>
#include <vector>

#include "lamina/plan.h"
#include "support/numbers/values.h"

namespace lamina::test {

/// Running statistics as a trained net would have them, the same in every plan of the net.
void set_statistics(Plan&);

/// What a forward and a backward pass leave behind, by name.
struct Outcome {
  Values output;
  std::vector<std::string> names;  ///< of parameters, then inputs
  std::vector<Values> gradients;
  std::vector<Values> state;
};

/// Runs forward and, in training, backward once.
Outcome run(Plan&);

/// Checks outputs, gradients and state: differences up to `relative` of the largest number of the tensor, for gradients
/// at least of a thousandth of the largest gradient of all (the gradient of a bias in front of a batch norm is
/// rounding).
void check_same(const Outcome& got, const Outcome& want, double relative);

/// The output of the plan's net, node by node in f64 by the oracle, outside any plan, from the plan's numbers.
Values compose(Plan&);

}  // namespace lamina::test
