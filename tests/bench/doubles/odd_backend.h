#pragma once
// Eigen with one more algorithm for convolutions. A test sets the algorithm's errors, workspace and delays.

#include <functional>
#include <string>
#include <vector>

#include "lamina/error.h"
#include "tests/support/backend.h"
#include "tests/support/wrapped_backend.h"

namespace lamina::test {

/// Eigen with one more algorithm for convolutions: "odd", which runs im2col_gemm and then `after`.
class Odd final : public WrappedBackend {
 public:
  explicit Odd(Backend& inner = oracle()) : WrappedBackend(inner) {}

  std::function<void(const Args&)> after = [](const Args&) {};
  std::size_t workspace = 0;
  bool deterministic = true;
  bool only_3x3 = false;
  bool no_room_by_rule = false;
  std::function<void(const Spec&)> refuse = [](const Spec&) {};  ///< throws for each spec that cannot be lowered

  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    std::vector<std::string> names = WrappedBackend::algorithms(spec, pass);
    if (takes(spec) && !names.empty()) names.emplace_back("odd");
    return names;
  }

  Lowered lower(const Spec& spec, const Choice& choice) override {
    refuse(spec);
    if (no_room_by_rule && choice.algorithm == std::array<std::string, 3>{}) throw OutOfMemory("no room");
    Choice plain = choice;
    for (std::string& name : plain.algorithm)
      if (name == "odd") name = "im2col_gemm";
    if (plain != choice && !takes(spec)) throw Unsupported("odd: needs a 3x3 window");
    Lowered lowered = WrappedBackend::lower(spec, plain);
    for (Lowered::Step& step : lowered.steps) {
      const auto pass = static_cast<std::size_t>(step.passes.front());
      if (pass >= choice.algorithm.size() || choice.algorithm[pass] != "odd") continue;
      step.algorithm = "odd";
      step.deterministic = deterministic;
      step.kernel = around(
          step.kernel, [](const Args&) {}, after, workspace);
      if (step.kernel->workspace_bytes() > choice.workspace_limit) throw Unsupported("odd: too much workspace");
    }
    return lowered;
  }

 private:
  bool takes(const Spec& spec) const {
    const auto* conv = std::get_if<Conv>(&spec.op);
    return conv != nullptr && (!only_3x3 || conv->kernel == Size(3));
  }
};

}  // namespace lamina::test
