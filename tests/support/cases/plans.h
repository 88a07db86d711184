#pragma once
// Plans for tests: their numbers on the host, whole nets composed by hand, two plans side by side.

#include <functional>
#include <string>
#include <vector>

#include "lamina/gradient_check.h"
#include "lamina/plan.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// Embeddings of 6 "ids" for each of 4 samples, their mean, 5 classes, and the loss against "labels".
Graph classifier(int vocabulary);

/// The elements of a state; of a step, its number.
Values read_state(const Plan&, const std::string& name);

/// Running statistics like those of a trained net, the same in every plan of the net.
void set_statistics(Plan&);

/// The results of a forward and a backward pass, by name.
struct Outcome {
  Values output;
  std::vector<std::string> names;  ///< of parameters, then inputs
  std::vector<Values> gradients;
  std::vector<Values> state;
};

/// Runs forward and, in training, backward once.
Outcome run(Plan&);

/// Checks outputs, gradients and state. The tolerance is `relative` of the largest number of the tensor, for gradients
/// at least of a thousandth of the largest of all gradients (the gradient of a bias before a batch norm is
/// rounding).
void check_same(const Outcome& got, const Outcome& want, double relative);

/// Fails the running test with the report's text, unless it passed.
void check_passed(const GradientReport&);

/// The output of the plan's net from the plan's numbers, node by node in f64 by the oracle, without a plan.
Values compose(Plan&);

}  // namespace lamina::test
