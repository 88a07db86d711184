#pragma once
// Shared by the files of this backend: views of tensors, kernels that launch, dispatch on element types, the ops.

#include <algorithm>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../../kernels/common/stream.h"
#include "../lowering.h"
#include "lamina/backend.h"
#include "lamina/error.h"
#include "machine.h"

namespace lamina::LAMINA_CUDA_SPACE {

/// A tensor as kernels see it.
template <class T>
View<T> view(const Tensor& tensor) {
  return {tensor.as<T>(), tensor.shape.n, tensor.shape.c, tensor.shape.h, tensor.shape.w, tensor.pitch};
}

/// A step whose function launches kernels on the machine's stream: function(stream, args).
template <class Function>
Lowered::Step launches(Machine& machine, std::vector<Pass> passes, std::string algorithm, Function function,
                       std::size_t workspace_bytes = 0) {
  return step(
      std::move(passes), std::move(algorithm),
      [&machine, function = std::move(function)](const Args& args) {
        try {
          function(machine.stream(), args);
        } catch (const LaunchError& error) {
          throw DeviceError(std::string(Machine::backend_name()) + ": " + error.what());
        }
      },
      workspace_bytes);
}

/// Bytes rounded up to where the next part of a workspace may begin.
inline std::size_t round_up(std::size_t bytes) {
  constexpr std::size_t alignment = 256;
  return (bytes + alignment - 1) / alignment * alignment;
}

/// Whether a step of the unit uses this algorithm.
inline bool uses(const Lowered& lowered, const char* algorithm) {
  return std::any_of(lowered.steps.begin(), lowered.steps.end(),
                     [&](const Lowered::Step& step) { return step.algorithm == algorithm; });
}

/// Calls `function.template operator()<T>()` with the T of `dtype`. Throws Unsupported for types that it lacks.
template <class Function>
decltype(auto) with_type(DType dtype, Function&& function) {
  switch (dtype) {
    case DType::f32: return function.template operator()<float>();
    case DType::f64: return function.template operator()<double>();
    default: break;
  }
  throw Unsupported(std::string(Machine::backend_name()) + ": no " + std::string(to_string(dtype)) +
                    "; it computes in f32 and f64");
}

// One per op, each in the file of the op's name. `spec.op` holds the op; the algorithm's name is "direct" if there
// is only one. They fill every vector of Lowered, one entry per x, and steps for the passes of spec.mode only.
Lowered lower(const MaxPool&, const Spec&, const Choice&, Machine&);
Lowered lower(const AveragePool&, const Spec&, const Choice&, Machine&);
Lowered lower(const GlobalAveragePool&, const Spec&, const Choice&, Machine&);
Lowered lower(const BatchNorm&, const Spec&, const Choice&, Machine&);
Lowered lower(const Lrn&, const Spec&, const Choice&, Machine&);
Lowered lower(const Conv&, const Spec&, const Choice&, Machine&);
Lowered lower(const FullyConnected&, const Spec&, const Choice&, Machine&);
Lowered lower(const Relu&, const Spec&, const Choice&, Machine&);
Lowered lower(const Dropout&, const Spec&, const Choice&, Machine&);
Lowered lower(const Softmax&, const Spec&, const Choice&, Machine&);
Lowered lower(const Sigmoid&, const Spec&, const Choice&, Machine&);
Lowered lower(const Tanh&, const Spec&, const Choice&, Machine&);
Lowered lower(const SoftmaxCrossEntropy&, const Spec&, const Choice&, Machine&);
Lowered lower(const SigmoidCrossEntropy&, const Spec&, const Choice&, Machine&);
Lowered lower(const Embedding&, const Spec&, const Choice&, Machine&);
Lowered lower(const Lstm&, const Spec&, const Choice&, Machine&);
Lowered lower(const Add&, const Spec&, const Choice&, Machine&);
Lowered lower(const Concat&, const Spec&, const Choice&, Machine&);
Lowered lower(const Slice&, const Spec&, const Choice&, Machine&);

/// Of Backend::update.
void run_update(const Update&, Machine&);

/// The algorithms of a convolution, fully connected op or LSTM, best guess first; for every other op {"direct"}.
std::vector<std::string> conv_algorithms(const Conv&, const Spec&, Pass);
std::vector<std::string> fully_connected_algorithms(Pass);
std::vector<std::string> lstm_algorithms(const Spec&, Pass);

}  // namespace lamina::LAMINA_CUDA_SPACE
