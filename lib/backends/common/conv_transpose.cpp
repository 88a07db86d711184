// A transposed convolution runs the steps of the mirrored convolution, with arguments and passes exchanged.

#include "conv_transpose.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/core/numbers/rounding.h"
#include "lib/core/units/spec_passes.h"
#include "lowering.h"

namespace lamina {
namespace {

/// Runs a step of the mirrored unit with arguments exchanged, then the backend's functions.
class Mirrored final : public Kernel {
 public:
  /// With `adds` the step writes its result to memory behind its workspace. This result is then added to dx.
  Mirrored(const Lowered::Step& step, const Spec& spec, const TransposedParts& parts, bool adds)
      : kernel_(step.kernel), pass_(mirrored(step.passes.front())), has_bias_(spec.w.size() > 1), parts_(parts) {
    const TensorSpec& x = spec.x[0];
    bytes_ = kernel_->workspace_bytes();
    if (adds) {
      sum_ = {nullptr, x.shape, x.dtype, x.layout, dense_pitch(x.shape, x.layout)};
      offset_ = aligned(bytes_);
      bytes_ = offset_ + dense_bytes(x.shape, x.dtype);
    }
    if (pass_ == Pass::backward_params && has_bias_) bytes_ = std::max(bytes_, parts_.bias_gradient_bytes);
    args_.x.resize(1), args_.dx.resize(1), args_.w.resize(1), args_.dw.resize(1);
  }

  std::size_t workspace_bytes() const override { return bytes_; }

  void run(const Args& args) override {
    const bool forward = pass_ == Pass::forward, params = pass_ == Pass::backward_params;
    if ((pass_ == Pass::backward_data && !wanted(args, 0)) || (params && args.dw.empty())) return;
    args_.w[0] = args.w[0];
    args_.x[0] = forward ? args.y : args.dy;
    args_.dx[0] = args.y;
    args_.y = args_.dy = args.x[0];
    if (params) args_.dw[0] = args.dw[0];
    if (pass_ == Pass::backward_data) args_.y = args.dx[0];
    if (sum_.pitch > 0) {
      args_.y = sum_;
      args_.y.data = static_cast<char*>(args.workspace) + offset_;
    }
    args_.prepared = args.prepared;
    args_.workspace = args.workspace;
    kernel_->run(args_);
    if (forward && has_bias_) parts_.add_bias(args);
    if (params && has_bias_ && args.dw[1]) parts_.bias_gradient(args);
    if (sum_.pitch > 0) parts_.add(args.dx[0], args_.y);
  }

 private:
  std::shared_ptr<Kernel> kernel_;
  Pass pass_;
  bool has_bias_;
  TransposedParts parts_;
  Tensor sum_{};
  std::size_t offset_ = 0, bytes_ = 0;
  Args args_;  // a member, so that a pass allocates nothing
};

}  // namespace

Pass mirrored(Pass pass) {
  if (pass == Pass::forward) return Pass::backward_data;
  return pass == Pass::backward_data ? Pass::forward : pass;
}

Spec mirrored(const Spec& spec) {
  const auto& op = std::get<ConvTranspose>(spec.op);
  const auto exchanged = [](TensorSpec tensor) {
    std::swap(tensor.pitch, tensor.gradient_pitch);
    if (tensor.pitch == 0) tensor.pitch = tensor.gradient_pitch;  // inference has no gradients
    return tensor;
  };
  return {.op = Conv{.channels = spec.x[0].shape.c,
                     .kernel = op.kernel,
                     .stride = op.stride,
                     .pad = op.pad,
                     .dilation = op.dilation,
                     .groups = op.groups,
                     .bias = false},
          .tail = {},
          .x = {exchanged(spec.y)},
          .y = exchanged(spec.x[0]),
          .w = {spec.w[0]},
          .state = {},
          .wants_dx = {true},
          .adds_dx = {false},
          .adds_dw = spec.adds_dw,
          .mode = Mode::training};
}

Lowered lower_transposed(const Spec& spec, const Choice& choice, const TransposedParts& parts,
                         const std::function<Lowered(const Spec&, const Choice&)>& lower) {
  const double u = unit_roundoff(spec.w[0].dtype);  // a bias or a sum is one more rounding
  Choice of_mirrored = choice;
  std::swap(of_mirrored.algorithm[0], of_mirrored.algorithm[2]);
  of_mirrored.max_error = (choice.max_error - u) / (1 + u);
  Spec of = mirrored(spec);
  if (adds_dx(spec, 0)) of.y.pitch = dense_pitch(of.y.shape, of.y.layout);
  const Lowered from = lower(of, of_mirrored);
  Lowered unit = product_flags(spec);
  unit.prepared_bytes = from.prepared_bytes;
  unit.workspace_exact = from.workspace_exact;
  for (Lowered::Step step : from.steps) {
    const Pass pass = mirrored(step.passes.front());
    if (!wants(spec, pass)) continue;
    if (pass != Pass::prepare) {
      step.kernel = std::make_shared<Mirrored>(step, spec, parts, pass == Pass::backward_data && adds_dx(spec, 0));
      step.passes = {pass};
      step.with_dx = nullptr;
      step.max_error = step.max_error + (1 + step.max_error) * u;
    }
    check_workspace(to_string(spec.op), choice, step);
    unit.steps.push_back(std::move(step));
  }
  std::ranges::stable_sort(unit.steps, {}, [](const Lowered::Step& step) { return step.passes.front(); });
  return unit;
}

}  // namespace lamina
