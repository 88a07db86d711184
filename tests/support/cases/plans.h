#pragma once
// Plans for tests: their numbers on the host, results of nets op by op, comparisons of two plans.

#include <string>
#include <vector>

#include "lamina/gradient_check.h"
#include "tests/support/backend.h"
#include "tests/support/numbers/values.h"

namespace lamina::test {

/// A net with 4 samples of 6 "ids": an embedding, its mean, 5 classes, and the loss with "labels".
Graph classifier(int vocabulary);

/// The elements of a plan's tensor.
Values read(const Plan&, const Tensor&);
void write(const Plan&, const Tensor&, const Values&);

/// Copies the parameters of one plan to another.
void copy_parameters(const Plan& from, const Plan& to);

/// The elements of a state. A step counter (u64) is returned as one number.
Values read_state(const Plan&, const std::string& name);

/// Sets running statistics like those of a trained net, the same in every plan of the net.
void set_statistics(Plan&);

/// The results of a forward and a backward pass, by name.
struct Outcome {
  Values output;
  std::vector<std::string> names;  ///< names of parameters, then of inputs
  std::vector<Values> gradients;
  std::vector<Values> state;
  bool operator==(const Outcome&) const = default;
};

/// Runs forward and, in training, backward once.
void run_passes(Plan&);
Outcome run(Plan&);  ///< runs the passes and reads the results

/// Checks outputs, gradients and state. The tolerance is `relative` times the tensor's largest number; with 0 all bits
/// must be equal. A gradient's tolerance is at least 1/1000 of the largest gradient's, because the gradient of a bias
/// before a batch norm is only rounding.
void check_same(const Outcome& got, const Outcome& want, double relative);

/// Fails the running test with the report's text, unless the report has passed.
void check_passed(const GradientReport&);

/// The output of the plan's net for the plan's numbers, which the oracle computes node by node in f64, without a plan.
Values compose(Plan&);

}  // namespace lamina::test
