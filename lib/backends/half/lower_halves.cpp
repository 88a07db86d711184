// A unit whose values are of half precision runs the kernels of f32. Around each kernel what it reads is widened into
// workspace, and what it wrote there is rounded to the nearest half: one rounding for each value and each gradient,
// whatever the unit holds. Parameters, their gradients, state, labels, ids and losses are of f32 and are not copied.
//
// That is done chunk by chunk, so that a chunk's copies stay in cache and workspace is small: some images at a time.
// Ops whose result needs all images are one chunk. Kernels that read and write halves themselves (takes_halves) run as
// they are.

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "chunks.h"
#include "lamina/error.h"
#include "lib/backends/lowering.h"
#include "lib/support/float16.h"
#include "lib/support/rounding.h"
#include "lib/support/scratch_allocator.h"
#include "lib/support/shortest.h"
#include "lib/support/units/op_reads.h"
#include "lib/support/units/spec_passes.h"
#include "lib/support/units/unit_memory.h"

namespace lamina {
namespace {

/// What a widened tensor takes of workspace.
std::size_t wide_bytes(const Shape& shape) { return aligned(static_cast<std::size_t>(shape.count()) * sizeof(float)); }

/// Whether backward compares y with numbers at which it rounds to the other side: then it makes y again from x instead.
bool makes_y_again(const Op& op, DType values) {
  const auto* const clip = std::get_if<Clip>(&op);
  const auto is_half_number = [&](double bound) {
    return std::isinf(bound) || lamina::widen(values, lamina::narrow(values, bound)) == bound;
  };
  if (clip != nullptr) return !is_half_number(clip->low) || !is_half_number(clip->high);
  return std::holds_alternative<HardSigmoid>(op);
}

/// What a kernel reads and writes of a unit's values and gradients.
struct Traffic {
  std::vector<bool> reads_x, reads_dx, writes_dx;
  bool reads_y = false, writes_y = false, makes_y = false, reads_dy = false;
  int y_in_x = -1, dx_in_dy = -1;  ///< the widened tensors that may be one

  Traffic(const Spec& spec, const Lowered& lowered, const Lowered::Step& step)
      : reads_x(spec.x.size()), reads_dx(spec.x.size()), writes_dx(spec.x.size()) {
    const auto in_place = [&](const std::vector<bool>& allowed, std::size_t i) {
      return allowed[i] && spec.x[i].dtype == spec.y.dtype && spec.x[i].shape == spec.y.shape;
    };
    if (step.covers(Pass::forward) || step.covers(Pass::recompute)) {
      reads_x.assign(spec.x.size(), true);
      writes_y = true;
      for (std::size_t i = spec.x.size(); i-- > 0;)
        if (in_place(lowered.y_may_alias_x, i)) y_in_x = static_cast<int>(i);
    }
    const bool params = step.covers(Pass::backward_params), data = step.covers(Pass::backward_data);
    if (!params && !data) return;
    reads_dy = true;
    makes_y = makes_y_again(spec.op, spec.y.dtype);
    reads_y = lowered.backward_reads_y && !makes_y;
    const bool reads_inputs = params || op_reads(spec.op, Pass::backward_data).x != OpReads::Inputs::none;
    for (std::size_t i = 0; i < spec.x.size(); ++i) {
      reads_x[i] = makes_y || (reads_inputs && lowered.backward_reads_x[i]);
      writes_dx[i] = data && spec.wants_dx[i];
      reads_dx[i] = writes_dx[i] && adds_dx(spec, i);
      if (writes_dx[i] && in_place(lowered.dx_may_alias_dy, i)) dx_in_dy = static_cast<int>(i);
    }
    // A kernel that adds to a gradient still needs dy then: it may be that of the same value, given twice.
    if (std::find(reads_dx.begin(), reads_dx.end(), true) != reads_dx.end()) dx_in_dy = -1;
  }
};

/// Runs a kernel of f32 on halves.
class HalfKernel final : public Kernel {
 public:
  /// `part` is the unit of a chunk. Its step `first` computes the first chunk; `later`, which adds to the parameters'
  /// gradients, the others.
  HalfKernel(const Spec& spec, const Lowered& part, const Lowered::Step& first, const Lowered::Step& later,
             const Chunks& chunks, HalfUnits& units)
      : units_(units),
        first_(first.kernel),
        later_(later.kernel),
        forward_(find_step(part, Pass::forward)->kernel),
        traffic_(spec, part, first),
        chunks_(chunks),
        runs_(first.covers(Pass::prepare) ? 1 : chunks.count),
        saved_bytes_(part.saved_bytes),
        scratch_bytes_(part.scratch_bytes),
        kernel_bytes_(aligned(std::max(first_->workspace_bytes(), later_->workspace_bytes()))),
        bytes_(kernel_bytes_) {
    const auto count = [&](const TensorSpec& tensor, bool wanted) {
      if (wanted && is_half(tensor.dtype)) bytes_ += wide_bytes(chunks.shape(tensor.shape));
    };
    for (std::size_t i = 0; i < spec.x.size(); ++i) {
      count(spec.x[i], traffic_.reads_x[i]);
      count(spec.x[i], traffic_.writes_dx[i] && traffic_.dx_in_dy != static_cast<int>(i));
    }
    count(spec.y, traffic_.reads_y || traffic_.makes_y || (traffic_.writes_y && traffic_.y_in_x < 0));
    count(spec.y, traffic_.reads_dy);
    part_.x.resize(spec.x.size());
    part_.dx.resize(spec.x.size());
    part_.w.resize(spec.w.size());
    part_.dw.resize(spec.w.size());
    part_.state.resize(spec.state.size());
  }

  std::size_t workspace_bytes() const override { return bytes_; }

  void run(const Args& args) override {
    for (int k = 0; k < runs_; ++k) {
      take(args, k);
      if (traffic_.makes_y) forward_->run(part_);
      (k == 0 ? first_ : later_)->run(part_);
      if (traffic_.writes_y) write(args.y, part_.y, k);
      for (std::size_t i = 0; i < args.dx.size(); ++i)
        if (traffic_.writes_dx[i] && first_of(args.dx, i) == i) write(args.dx[i], part_.dx[i], k);
    }
  }

 private:
  /// A value that is given twice has one gradient, to which both are added.
  static std::size_t first_of(const std::vector<Tensor>& tensors, std::size_t i) {
    for (std::size_t j = 0; j < i; ++j)
      if (tensors[i] && tensors[j].data == tensors[i].data) return j;
    return i;
  }

  /// Binds `part_` to chunk k.
  void take(const Args& args, int k) {
    ScratchAllocator memory(args.workspace, block_alignment);
    part_.workspace = memory.take<std::byte>(static_cast<std::int64_t>(kernel_bytes_));
    const auto wide = [&](const Tensor& all, bool reads, bool writes) {
      const Tensor half = chunks_.part(all, k);
      if (!is_half(half.dtype)) return half;
      Tensor tensor{nullptr, half.shape, DType::f32, half.layout, dense_pitch(half.shape, half.layout)};
      if (!half || !(reads || writes)) return tensor;
      tensor.data = memory.take<float>(half.shape.count());
      if (reads) units_.convert(tensor, half);
      return tensor;
    };
    for (std::size_t i = 0; i < args.x.size(); ++i) part_.x[i] = wide(args.x[i], traffic_.reads_x[i], false);
    part_.y = wide(args.y, traffic_.reads_y, traffic_.makes_y || (traffic_.writes_y && traffic_.y_in_x < 0));
    if (traffic_.y_in_x >= 0) part_.y.data = part_.x[static_cast<std::size_t>(traffic_.y_in_x)].data;
    part_.dy = wide(args.dy, traffic_.reads_dy, false);
    for (std::size_t i = 0; i < args.dx.size(); ++i) {
      const bool on_dy = traffic_.dx_in_dy == static_cast<int>(i) && args.dx[i];
      const std::size_t first = first_of(args.dx, i);
      part_.dx[i] = wide(args.dx[i], traffic_.reads_dx[i] && first == i, traffic_.writes_dx[i] && first == i && !on_dy);
      if (first != i) part_.dx[i].data = part_.dx[first].data;
      if (on_dy) part_.dx[i].data = part_.dy.data;
    }
    part_.w = args.w;
    part_.dw = args.dw;
    part_.state = args.state;
    part_.saved = Chunks::block(args.saved, saved_bytes_, k);
    part_.scratch = Chunks::block(args.scratch, scratch_bytes_, k);
    part_.prepared = args.prepared;
  }

  void write(const Tensor& all, const Tensor& from, int k) const {
    const Tensor to = chunks_.part(all, k);
    if (to && is_half(to.dtype)) units_.convert(to, from);
  }

  HalfUnits& units_;
  std::shared_ptr<Kernel> first_, later_, forward_;
  Traffic traffic_;
  Chunks chunks_;
  int runs_;
  std::size_t saved_bytes_, scratch_bytes_;  // of a chunk
  std::size_t kernel_bytes_, bytes_;
  Args part_;  // of the chunk that runs: a pass allocates nothing
};

/// What a choice for a unit with halves leaves to the kernels of f32.
Choice choice_in_f32(const std::string& unit, const Spec& spec, const Spec& part, const Choice& choice) {
  Choice left = choice;
  const DType values = half_type(spec);
  const double u = unit_roundoff(values);
  if (choice.max_error < u)
    throw Unsupported(unit + ": values of " + std::string(to_string(values)) +
                      " are rounded by a relative error of up to " + shortest(u) + ", not " +
                      shortest(choice.max_error));
  left.max_error = (choice.max_error - u) / (1 + u);
  std::size_t wide = ends_in_relu(spec) ? wide_bytes(part.y.shape) : 0;
  for (const TensorSpec& x : part.x) wide += wide_bytes(x.shape);
  wide += wide_bytes(part.y.shape);
  left.workspace_limit -= std::min(wide, left.workspace_limit);
  return left;
}

/// The unit that adds to the parameters' gradients of the first, by the same algorithms.
Lowered lower_later(Spec part, const Lowered& first, Choice choice, HalfUnits& units) {
  part.adds_dw = true;
  for (const Lowered::Step& step : first.steps)
    for (const Pass pass : step.passes)
      if (const auto p = static_cast<std::size_t>(pass); p < choice.algorithm.size())
        choice.algorithm[p] = step.algorithm;
  return units.lower(part, choice);
}

}  // namespace

Spec spec_of_chunk(const Spec& spec, const Chunks& chunks) {
  Spec part = spec;
  const auto cut = [&](TensorSpec& tensor) { tensor.shape = chunks.shape(tensor.shape); };
  std::for_each(part.x.begin(), part.x.end(), cut);
  cut(part.y);
  return in_f32(std::move(part));
}

double half_error(double error, const Lowered::Step& step, DType values, int chunks) {
  if (!step.covers(Pass::backward_params)) return error + (1 + error) * unit_roundoff(values);
  return error + (1 + error) * (chunks - 1) * unit_roundoff(DType::f32) * 1.01;  // 1.01: the higher powers
}

bool has_one_type(const Spec& spec) {
  return std::all_of(spec.x.begin(), spec.x.end(), [&](const TensorSpec& x) { return x.dtype == spec.y.dtype; });
}

DType half_type(const Spec& spec) {
  for (const TensorSpec& x : spec.x)
    if (is_half(x.dtype)) return x.dtype;
  return spec.y.dtype;
}

bool has_halves(const Spec& spec) {
  return is_half(spec.y.dtype) ||
         std::any_of(spec.x.begin(), spec.x.end(), [](const TensorSpec& x) { return is_half(x.dtype); });
}

Spec in_f32(Spec spec) {
  const auto widen = [](TensorSpec& tensor) {
    if (!is_half(tensor.dtype)) return;
    tensor.dtype = DType::f32;
    tensor.pitch = tensor.gradient_pitch = dense_pitch(tensor.shape, tensor.layout);
  };
  std::for_each(spec.x.begin(), spec.x.end(), widen);
  widen(spec.y);
  return spec;
}

Lowered lower_halves(const Spec& spec, const Choice& choice, HalfUnits& units) {
  const std::string unit = std::string(units.backend()) + ": " + to_string(spec.op);
  const bool takes_halves = has_one_type(spec) && units.takes_halves(spec) && !makes_y_again(spec.op, spec.y.dtype);
  const Chunks chunks(spec, takes_halves, units);
  const Spec part_spec = spec_of_chunk(spec, chunks);
  const Choice left = choice_in_f32(unit, spec, part_spec, choice);
  const Lowered part = units.lower(takes_halves ? spec : part_spec, left);
  const bool adds_up = chunks.count > 1 && wants(spec, Pass::backward_params);
  const Lowered later = adds_up ? lower_later(part_spec, part, left, units) : part;

  Lowered lowered = part;
  lowered.steps.clear();
  for (std::size_t i = 0; i < part.steps.size(); ++i) {
    Lowered::Step step = part.steps[i];
    step.max_error = half_error(step.max_error, step, half_type(spec), chunks.count);
    if (!takes_halves) step.kernel = std::make_shared<HalfKernel>(spec, part, step, later.steps[i], chunks, units);
    check_workspace(unit, choice, step);
    lowered.steps.push_back(std::move(step));
  }
  lowered.saved_bytes = chunks.all_blocks(part.saved_bytes);
  lowered.scratch_bytes = chunks.all_blocks(part.scratch_bytes);
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    const bool same_type = spec.x[i].dtype == spec.y.dtype;
    lowered.y_may_alias_x[i] = part.y_may_alias_x[i] && same_type && same_pitch(spec, i);
    lowered.dx_may_alias_dy[i] = part.dx_may_alias_dy[i] && same_type && same_gradient_pitch(spec, i);
    lowered.dx_is_dy[i] = part.dx_is_dy[i] && same_type;
  }
  if (makes_y_again(spec.op, spec.y.dtype) && spec.mode == Mode::training) {
    lowered.backward_reads_y = false;
    lowered.backward_reads_x[0] = true;
  }
  return lowered;
}

}  // namespace lamina
