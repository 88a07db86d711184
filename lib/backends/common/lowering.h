#pragma once
// Shared by every backend's lowering: kernels from functions, and the flags of a unit.

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lamina/backend.h"
#include "lamina/error.h"
#include "lib/core/text/one_of.h"
#include "lib/core/units/box.h"
#include "lib/core/units/reorder.h"

namespace lamina {

/// A kernel from a function of its arguments.
template <class Function>
class FunctionKernel final : public Kernel {
 public:
  FunctionKernel(Function function, std::size_t workspace_bytes)
      : function_(std::move(function)), workspace_bytes_(workspace_bytes) {}
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  void run(const Args& args) override { function_(args); }

 private:
  Function function_;
  std::size_t workspace_bytes_;
};

template <class Function>
Lowered::Step step(std::vector<Pass> passes, std::string algorithm, Function function,
                   std::size_t workspace_bytes = 0) {
  return {{std::move(passes), std::move(algorithm)},
          std::make_shared<FunctionKernel<Function>>(std::move(function), workspace_bytes)};
}

/// Calls `function.template operator()<T>()` with T = float or double, by `dtype`. Throws Unsupported for other types.
template <class Function>
decltype(auto) with_type(const std::string& backend, DType dtype, Function&& function) {
  if (dtype == DType::f32) return function.template operator()<float>();
  if (dtype == DType::f64) return function.template operator()<double>();
  throw Unsupported(backend + ": no " + std::string(to_string(dtype)) + "; it computes in f32 and f64");
}

/// The passes of a step that computes every gradient of the unit.
std::vector<Pass> gradient_passes(const Spec&);

/// Whether an op has the pass, whatever its unit wants.
bool has_pass(const Op&, Pass);

/// The unit with the steps of an op whose only algorithm is "direct": forward, and in training backward. If the op has
/// the pass recompute, that pass runs forward again.
template <class Forward, class Backward>
Lowered with_steps(Lowered unit, const Spec& spec, const Forward& forward, const Backward& backward,
                   std::size_t forward_workspace = 0, std::size_t backward_workspace = 0,
                   std::vector<Pass> backward_passes = {Pass::backward_data}) {
  unit.steps.push_back(step({Pass::forward}, "direct", forward, forward_workspace));
  if (spec.mode == Mode::inference) return unit;
  if (has_pass(spec.op, Pass::recompute))
    unit.steps.push_back(step({Pass::recompute}, "direct", forward, forward_workspace));
  unit.steps.push_back(step(std::move(backward_passes), "direct", backward, backward_workspace));
  return unit;
}

/// Throws UsageError for an enumerator out of range.
void check_enumerators(const Spec&, const Choice&);

/// A unit with every vector of the right length and all flags off.
Lowered empty_unit(const Spec&);

/// Whether x[i] and y (or dx[i] and dy) have equal pitches, so that they may share memory.
inline bool same_pitch(const Spec& spec, std::size_t i) { return spec.x[i].pitch == spec.y.pitch; }
inline bool same_gradient_pitch(const Spec& spec, std::size_t i) {
  return spec.x[i].gradient_pitch == spec.y.gradient_pitch;
}

/// Lets y share memory with x[i], and dx[i] with dy, where the pitches are equal.
void allow_in_place(Lowered&, const Spec&, std::size_t i);

/// The unit of an op that may work in place and computes its gradient from y and dy, such as ReLU.
Lowered in_place_unit(const Spec&);
/// The same for an op whose gradient is computed from x or from y, as op_reads() says.
Lowered pointwise_unit(const Spec&);

/// The unit of a Binary. An input that has the shape of y may share the memory of y.
Lowered binary_unit(const Spec&);

/// The unit of a Reorder. A Reorder that only regroups axes may work in place.
Lowered reorder_unit(const Spec&, const std::vector<CopyAxis>&);

/// The Add and the ReLU that follow a batch norm. Other functions need no flag: their gradient reads x.
struct NormTail {
  bool add = false, relu = false;
};
NormTail norm_tail(const Spec&);

/// The unit of a batch norm. The mask of its ReLU comes from x, or from y if an Add comes before the ReLU.
Lowered norm_unit(const Spec&, NormTail);

/// Whether y is a function of x, element by element.
inline bool is_activation(const Op& op) { return holds<Relu, Pointwise>(op); }

/// Throws Unsupported for a step that needs more workspace than the limit. `unit` starts the message.
void check_workspace(const std::string& unit, const Choice&, const Lowered::Step&);

/// For ops with one algorithm per pass. A choice may call it "direct" or by the name of its step. Throws UsageError for
/// any other name, Unsupported for a step that needs more workspace than the limit. `backend` starts the messages.
void check_direct(const std::string& backend, const Spec&, const Choice&, const Lowered&);

/// Whether dx[i] is added to the old contents.
inline bool adds_dx(const Spec& spec, std::size_t i) { return i < spec.adds_dx.size() && spec.adds_dx[i]; }
/// Whether dx[i] is wanted.
inline bool wanted(const Args& args, std::size_t i) { return i < args.dx.size() && args.dx[i]; }

/// Whether two tensors of one shape are the same memory.
inline bool same_place(const Tensor& a, const Tensor& b) { return a.data == b.data && a.pitch == b.pitch; }

/// Whether the last op of the unit's tail is a ReLU.
inline bool ends_in_relu(const Spec& spec) {
  return !spec.tail.empty() && std::holds_alternative<Relu>(spec.tail.back());
}

/// The unit of a convolution or fully connected op without its steps: the flags of what its passes read.
Lowered product_flags(const Spec&);

/// The passes for which a convolution or fully connected unit has steps.
std::vector<Pass> product_passes(const Spec&);

/// Half the distance between 1 and the next number: the largest relative error of rounding to nearest, above underflow.
double unit_roundoff(DType);

}  // namespace lamina
