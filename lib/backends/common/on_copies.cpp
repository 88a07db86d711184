// A unit runs on copies if its values are halves or in a layout that the backend's kernels do not take. Then a
// unit with halves runs kernels of f32. Its inputs are widened into workspace. Its results are made in workspace, and
// then each value and each gradient is rounded once to the nearest half, however many ops the unit has. Parameters,
// their gradients, state, labels, ids and losses are f32, so their numbers are not converted.
//
// Copies are made chunk by chunk, some images at a time, so that they stay in cache and the workspace is small. Ops
// that need all images at once run as one chunk. Kernels that take halves (takes_halves) run without copies.
//
// Values in nhwc are copied to nchw in the same way, also in f32, if the backend does not take nhwc. Parameters are
// copied where their order differs.

#include "on_copies.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/core/numbers/float16.h"
#include "lib/core/numbers/rounding.h"
#include "lib/core/text/shortest.h"
#include "lib/core/units/op_reads.h"
#include "lib/core/units/scratch_allocator.h"
#include "lib/core/units/spec_passes.h"
#include "lib/core/units/unit_memory.h"

namespace lamina {
namespace {

std::size_t copy_bytes(const Shape& shape, DType dtype) { return aligned(dense_bytes(shape, dtype)); }

/// Whether backward computes y again in f32, because it compares y with the function's limits: a rounded y may lie on
/// the other side. A clip of a half with limits that are halves gives a half, so its y is not rounded. A clipped sum
/// is.
bool makes_y_again(const Spec& spec) {
  if (spec.mode == Mode::inference) return false;
  const bool sum = std::holds_alternative<Add>(spec.op) && !spec.tail.empty();
  const auto* const its = std::get_if<Pointwise>(sum ? &spec.tail.back() : &spec.op);
  const DType values = spec.y.dtype;
  const auto is_half_number = [&](double limit) {
    return std::isinf(limit) || lamina::widen(values, lamina::narrow(values, limit)) == limit;
  };
  if (its == nullptr) return false;
  return its->function == Function::hard_sigmoid ||
         (its->function == Function::clip && (sum || !(is_half_number(its->a) && is_half_number(its->b))));
}

/// The values and gradients of a unit that a kernel reads and writes.
struct MemoryAccess {
  std::vector<bool> reads_x, reads_dx, writes_dx;
  std::size_t reads_w = 0;  ///< number of parameters that are read: the first reads_w
  bool reads_y = false, writes_y = false, makes_y = false, reads_dy = false;
  int y_in_x = -1;    ///< index of the x whose copy holds y; -1: none
  int dx_in_dy = -1;  ///< index of the dx that is made in the copy of dy; -1: none

  MemoryAccess(const Spec& spec, const Lowered& lowered, const Lowered::Step& step, const ComputeType& form)
      : reads_x(spec.x.size()), reads_dx(spec.x.size()), writes_dx(spec.x.size()) {
    // A kernel works in place on a copy of x or dy, and never on the tensor itself.
    const auto in_place = [&](const std::vector<bool>& allowed, std::size_t i, std::int64_t pitch) {
      return allowed[i] && spec.x[i].dtype == spec.y.dtype && spec.x[i].shape == spec.y.shape &&
             form.copies(spec.x[i], pitch);
    };
    if (step.covers(Pass::forward) || step.covers(Pass::recompute)) {
      reads_x.assign(spec.x.size(), true);
      writes_y = true;
      for (std::size_t i = spec.x.size(); i-- > 0;)
        if (in_place(lowered.y_may_alias_x, i, spec.x[i].pitch)) y_in_x = static_cast<int>(i);
    }
    for (const Pass pass : step.passes)
      reads_w = std::max(
          reads_w, pass == Pass::prepare ? spec.w.size() : static_cast<std::size_t>(op_reads(spec.op, pass).params));
    const bool params = step.covers(Pass::backward_params), data = step.covers(Pass::backward_data);
    if (!params && !data) return;
    reads_dy = true;
    makes_y = has_halves(spec) && makes_y_again(spec);
    reads_y = lowered.backward_reads_y && !makes_y;
    const bool reads_inputs = params || op_reads(spec.op, Pass::backward_data).x != OpReads::Inputs::none;
    for (std::size_t i = 0; i < spec.x.size(); ++i) {
      reads_x[i] = makes_y || (reads_inputs && lowered.backward_reads_x[i]);
      writes_dx[i] = data && spec.wants_dx[i];
      reads_dx[i] = writes_dx[i] && adds_dx(spec, i);
      if (writes_dx[i] && in_place(lowered.dx_may_alias_dy, i, spec.y.gradient_pitch)) dx_in_dy = static_cast<int>(i);
    }
    // A kernel adds to dx if an input is given twice. It then reads dy twice, so no dx may overwrite dy.
    if (std::find(reads_dx.begin(), reads_dx.end(), true) != reads_dx.end()) dx_in_dy = -1;
  }
};

/// Runs a kernel on copies of the tensors that it does not take directly.
class HalfKernel final : public Kernel {
 public:
  /// `part` is the unit of one chunk. The step `first` computes the first chunk. The step `later` computes later chunks
  /// and adds to the parameter gradients.
  HalfKernel(const Spec& spec, const Lowered& part, const Lowered::Step& first, const Lowered::Step& later,
             const Chunks& chunks, const ComputeType& form, const MixedPrecisionLowering& units)
      : units_(units),
        first_(first.kernel),
        later_(later.kernel),
        traffic_(spec, part, first, form),
        chunks_(chunks),
        form_(form),
        runs_(first.covers(Pass::prepare) ? 1 : chunks.count),
        writes_dw_(first.covers(Pass::backward_params)),
        adds_dw_(spec.adds_dw),
        saved_bytes_(part.saved_bytes),
        scratch_bytes_(part.scratch_bytes),
        kernel_bytes_(aligned(std::max(first_->workspace_bytes(), later_->workspace_bytes()))),
        bytes_(kernel_bytes_) {
    const auto count = [&](const TensorSpec& tensor, std::int64_t pitch, bool wanted) {
      if (wanted && form.copies(tensor, pitch))
        bytes_ += copy_bytes(chunks.shape(tensor.shape), form.type(tensor.dtype));
    };
    for (std::size_t i = 0; i < spec.x.size(); ++i) {
      count(spec.x[i], spec.x[i].pitch, traffic_.reads_x[i]);
      count(spec.x[i], spec.x[i].gradient_pitch, traffic_.writes_dx[i] && traffic_.dx_in_dy != static_cast<int>(i));
    }
    count(spec.y, spec.y.pitch, traffic_.reads_y || traffic_.makes_y || (traffic_.writes_y && traffic_.y_in_x < 0));
    count(spec.y, spec.y.gradient_pitch, traffic_.reads_dy);
    for (std::size_t i = 0; i < spec.w.size(); ++i)
      if (form.copies(spec.w[i], spec.w[i].pitch))
        bytes_ +=
            ((i < traffic_.reads_w ? 1 : 0) + (writes_dw_ ? 1 : 0)) * copy_bytes(spec.w[i].shape, spec.w[i].dtype);
    part_.x.resize(spec.x.size());
    part_.dx.resize(spec.x.size());
    part_.w.resize(spec.w.size());
    part_.dw.resize(spec.w.size());
    part_.state.resize(spec.state.size());
    if (traffic_.makes_y) forward_ = find_step(part, Pass::forward)->kernel;
  }

  std::size_t workspace_bytes() const override { return bytes_; }

  void run(const Args& args) override {
    for (int k = 0; k < runs_; ++k) {
      take(args, k);
      if (traffic_.makes_y) forward_->run(part_);
      (k == 0 ? first_ : later_)->run(part_);
      if (traffic_.writes_y) write(chunks_.part(args.y, k), part_.y);
      for (std::size_t i = 0; i < args.dx.size(); ++i)
        if (traffic_.writes_dx[i] && first_of(args.dx, i) == i) write(chunks_.part(args.dx[i], k), part_.dx[i]);
    }
    for (std::size_t i = 0; writes_dw_ && i < args.dw.size(); ++i) write(args.dw[i], part_.dw[i]);
  }

 private:
  /// Index of the first tensor with the memory of tensor i. A value that is given twice has one gradient.
  static std::size_t first_of(const std::vector<Tensor>& tensors, std::size_t i) {
    for (std::size_t j = 0; j < i; ++j)
      if (tensors[i] && tensors[j].data == tensors[i].data) return j;
    return i;
  }

  bool copied(const Tensor& tensor) const {
    return form_.copies({tensor.shape, tensor.dtype, tensor.layout, tensor.pitch, tensor.pitch}, tensor.pitch);
  }

  /// The dense tensor at `data` in the form that the kernels take.
  Tensor formed(const Tensor& like, void* data) const {
    const Layout layout = form_.nchw ? Layout::nchw : like.layout;
    return {data, like.shape, form_.type(like.dtype), layout, dense_pitch(like.shape, layout)};
  }

  /// Copies between a tensor of the unit and its copy, in either direction.
  void copy(Tensor to, Tensor from) const {
    if (form_.keeps_order)
      for (Tensor* const tensor : {&to, &from})
        if (std::exchange(tensor->layout, Layout::nhwc) == Layout::nchw) tensor->pitch = tensor->shape.c;
    units_.convert(to, from);
  }

  /// Binds `part_` to chunk k.
  void take(const Args& args, int k) {
    ScratchAllocator memory(args.workspace, block_alignment);
    part_.workspace = memory.take<std::byte>(static_cast<std::int64_t>(kernel_bytes_));
    const auto in_form = [&](const Tensor& tensor, bool reads, bool writes) {
      if (!copied(tensor)) return form_.nchw ? formed(tensor, tensor.data) : tensor;
      Tensor other = formed(tensor, nullptr);
      if (!tensor || !(reads || writes)) return other;
      other.data = memory.take<std::byte>(tensor.shape.count() * static_cast<std::int64_t>(size_of(other.dtype)));
      if (reads) copy(other, tensor);
      return other;
    };
    for (std::size_t i = 0; i < args.w.size(); ++i)
      part_.w[i] = in_form(args.w[i], k == 0 && i < traffic_.reads_w, i < traffic_.reads_w);
    for (std::size_t i = 0; i < args.dw.size(); ++i)
      part_.dw[i] = in_form(args.dw[i], k == 0 && adds_dw_ && writes_dw_, writes_dw_);
    const auto of_chunk = [&](const Tensor& all, bool reads, bool writes) {
      return in_form(chunks_.part(all, k), reads, writes);
    };
    for (std::size_t i = 0; i < args.x.size(); ++i) part_.x[i] = of_chunk(args.x[i], traffic_.reads_x[i], false);
    part_.y = of_chunk(args.y, traffic_.reads_y, traffic_.makes_y || (traffic_.writes_y && traffic_.y_in_x < 0));
    if (traffic_.y_in_x >= 0) part_.y.data = part_.x[static_cast<std::size_t>(traffic_.y_in_x)].data;
    part_.dy = of_chunk(args.dy, traffic_.reads_dy, false);
    for (std::size_t i = 0; i < args.dx.size(); ++i) {
      const bool on_dy = traffic_.dx_in_dy == static_cast<int>(i) && args.dx[i];
      const std::size_t first = first_of(args.dx, i);
      part_.dx[i] =
          of_chunk(args.dx[i], traffic_.reads_dx[i] && first == i, traffic_.writes_dx[i] && first == i && !on_dy);
      if (first != i) part_.dx[i].data = part_.dx[first].data;
      if (on_dy) part_.dx[i].data = part_.dy.data;
    }
    part_.state = args.state;
    part_.saved = Chunks::block(args.saved, saved_bytes_, k);
    part_.scratch = Chunks::block(args.scratch, scratch_bytes_, k);
    part_.prepared = args.prepared;
  }

  void write(const Tensor& to, const Tensor& from) const {
    if (to && copied(to)) copy(to, from);
  }

  const MixedPrecisionLowering& units_;
  std::shared_ptr<Kernel> first_, later_, forward_;
  MemoryAccess traffic_;
  Chunks chunks_;
  ComputeType form_;
  int runs_;
  bool writes_dw_, adds_dw_;
  std::size_t saved_bytes_, scratch_bytes_;  // sizes for one chunk
  std::size_t kernel_bytes_, bytes_;
  Args part_;  // arguments for the running chunk; a member, so that a pass allocates nothing
};

/// Whether the op needs all images at once.
bool needs_all_images(const Op& op) {
  return holds<SoftmaxCrossEntropy, SigmoidCrossEntropy, BatchNorm, Dropout, Embedding, Recurrent>(op);
}

ComputeType form_of(const Spec& spec, const MixedPrecisionLowering& units) {
  ComputeType form;
  form.types = !has_halves(spec) || (has_one_type(spec) && units.takes_halves(spec) && !makes_y_again(spec));
  form.nchw = spec.y.layout == Layout::nhwc && !units.takes_nhwc(spec);
  form.keeps_order = form.nchw && std::holds_alternative<FullyConnected>(spec.op);
  return form;
}

Chunks chunks_of(const Spec& spec, const ComputeType& form, const MixedPrecisionLowering& units) {
  const int images = spec.y.shape.n;
  if (!form.copies() || needs_all_images(spec.op)) return Chunks(images);
  std::int64_t elements = 0;
  const auto add = [&](const TensorSpec& value) {
    if (is_half(value.dtype) || value.layout == Layout::nhwc) elements += value.shape.count();
  };
  std::for_each(spec.x.begin(), spec.x.end(), add);
  add(spec.y);
  return {images, elements, units.chunk_elements()};
}

Spec spec_of_chunk(Spec spec, const Chunks& chunks) {
  const auto cut = [&](TensorSpec& tensor) { tensor.shape = chunks.shape(tensor.shape); };
  std::for_each(spec.x.begin(), spec.x.end(), cut);
  cut(spec.y);
  return spec;
}

/// The unit of the later chunks. It has the algorithms of `first` and adds to the parameter gradients.
Lowered lower_later(Spec part, const Lowered& first, Choice choice, const MixedPrecisionLowering& units) {
  part.adds_dw = true;
  for (const Lowered::Step& step : first.steps)
    for (const Pass pass : step.passes)
      if (const auto p = static_cast<std::size_t>(pass); p < choice.algorithm.size())
        choice.algorithm[p] = step.algorithm;
  return units.lower_directly(part, choice);
}

Spec in_nchw(Spec spec) {
  const auto order = [](TensorSpec& tensor) {
    tensor.layout = Layout::nchw;
    tensor.pitch = tensor.gradient_pitch = dense_pitch(tensor.shape, tensor.layout);
  };
  for (std::vector<TensorSpec>* const all : {&spec.x, &spec.w, &spec.state})
    std::for_each(all->begin(), all->end(), order);
  order(spec.y);
  return spec;
}

}  // namespace

std::string unit_text(const Spec& spec, const MixedPrecisionLowering& units) {
  return std::string(units.backend()) + ": " + to_string(spec.op);
}

double half_error(double error, Pass pass, DType values, int chunks) {
  if (pass != Pass::backward_params) return error + (is_half(values) ? (1 + error) * unit_roundoff(values) : 0);
  return error + (1 + error) * (chunks - 1) * unit_roundoff(DType::f32) * 1.01;  // 1.01 covers the higher powers
}

bool is_permuted(const Shape& shape) { return shape.c > 1 && shape.plane() > 1; }

bool has_one_type(const Spec& spec) {
  return std::all_of(spec.x.begin(), spec.x.end(), [&](const TensorSpec& x) { return x.dtype == spec.y.dtype; });
}

DType half_type(const Spec& spec) {
  for (const TensorSpec& x : spec.x)
    if (is_half(x.dtype)) return x.dtype;
  return spec.y.dtype;
}

bool has_halves(const Spec& spec) { return is_half(half_type(spec)); }

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

bool ComputeType::copies(const TensorSpec& tensor, std::int64_t pitch) const {
  const Tensor like{nullptr, tensor.shape, tensor.dtype, tensor.layout, pitch};
  return (is_half(tensor.dtype) && copies()) ||
         (nchw && (!like.dense() || (!keeps_order && is_permuted(tensor.shape))));
}

Spec ComputeType::of(Spec spec) const {
  if (!types) spec = in_f32(std::move(spec));
  return nchw ? in_nchw(std::move(spec)) : spec;
}

OnCopies::OnCopies(const Spec& spec, const MixedPrecisionLowering& units)
    : spec_(spec),
      units_(units),
      form_(form_of(spec, units)),
      chunks_(chunks_of(spec, form_, units)),
      part_(form_.of(spec_of_chunk(spec, chunks_))) {}

bool OnCopies::sums_chunks() const { return chunks_.count > 1 && wants(spec_, Pass::backward_params); }

Choice OnCopies::left_of(const Choice& choice) const {
  Choice left = choice;
  const DType values = half_type(spec_);
  const double u = is_half(values) ? unit_roundoff(values) : 0;
  if (choice.max_error < u)
    throw Unsupported(unit_text(spec_, units_) + ": values of " + std::string(to_string(values)) +
                      " have relative rounding errors of up to " + shortest(u) + ", above " +
                      shortest(choice.max_error));
  left.max_error = (choice.max_error - u) / (1 + u);
  if (!form_.copies()) return left;
  std::size_t copies = (ends_in_relu(spec_) ? 2 : 1) * copy_bytes(part_.y.shape, part_.y.dtype);
  for (const TensorSpec& x : part_.x) copies += copy_bytes(x.shape, x.dtype);
  for (const TensorSpec& w : spec_.w)
    if (form_.copies(w, w.pitch)) copies += 2 * copy_bytes(w.shape, w.dtype);
  left.workspace_limit -= std::min(copies, left.workspace_limit);
  return left;
}

double OnCopies::error(double of_kernel, Pass pass) const {
  return half_error(of_kernel, pass, half_type(spec_), chunks_.count);
}

Lowered::Step OnCopies::step(const Lowered& part, Lowered::Step first, const Lowered::Step& later) const {
  const bool of_params = first.covers(Pass::backward_params);
  first.max_error = error(first.max_error, of_params ? Pass::backward_params : first.passes.front());
  if (form_.copies()) first.kernel = std::make_shared<HalfKernel>(spec_, part, first, later, chunks_, form_, units_);
  first.with_dx = nullptr;
  return first;
}

Lowered OnCopies::unit(Lowered part) const {
  part.steps.clear();
  part.saved_bytes = chunks_.all_blocks(part.saved_bytes);
  part.scratch_bytes = chunks_.all_blocks(part.scratch_bytes);
  for (std::size_t i = 0; i < spec_.x.size(); ++i) {
    const bool same_type = spec_.x[i].dtype == spec_.y.dtype;
    part.y_may_alias_x[i] = part.y_may_alias_x[i] && same_type && same_pitch(spec_, i);
    part.dx_may_alias_dy[i] = part.dx_may_alias_dy[i] && same_type && same_gradient_pitch(spec_, i);
    part.dx_is_dy[i] = part.dx_is_dy[i] && same_type;
  }
  if (has_halves(spec_) && makes_y_again(spec_)) {
    part.backward_reads_y = false;
    part.backward_reads_x.assign(spec_.x.size(), true);
  }
  return part;
}

Lowered lower_on_copies(const Spec& spec, const Choice& choice, const MixedPrecisionLowering& units) {
  const OnCopies copies(spec, units);
  const Choice left = copies.left_of(choice);
  const Lowered part = units.lower_directly(copies.part(), left);
  const Lowered later = copies.sums_chunks() ? lower_later(copies.part(), part, left, units) : part;
  Lowered lowered = copies.unit(part);
  for (std::size_t i = 0; i < part.steps.size(); ++i) {
    lowered.steps.push_back(copies.step(part, part.steps[i], later.steps[i]));
    check_workspace(unit_text(spec, units), choice, lowered.steps.back());
  }
  return lowered;
}

}  // namespace lamina
