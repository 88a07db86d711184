// One unit's tensors and blocks bound in memory that is lent for a measurement.

#include "unit_memory.h"

namespace lamina {
namespace {

/// Hands out memory from front to back, or only counts it where there is none.
class Lent {
 public:
  explicit Lent(void* at) : at_(static_cast<char*>(at)) {}
  void* take(std::size_t bytes) {
    void* const taken = at_ == nullptr ? nullptr : at_ + taken_;
    taken_ += aligned_bytes(bytes);
    return taken;
  }
  Tensor take(const TensorSpec& spec, std::int64_t pitch) {
    const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
    return {take(static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype)), spec.shape, spec.dtype, spec.layout,
            pitch};
  }
  std::size_t taken_bytes() const { return taken_; }

 private:
  char* at_;
  std::size_t taken_ = 0;
};

}  // namespace

UnitMemory bind_unit(const Spec& spec, const Lowered& lowered, void* lent) {
  Lent memory(lent);
  UnitMemory unit;
  Args& args = unit.args;
  const bool training = spec.mode == Mode::training;
  for (std::size_t i = 0; i < spec.x.size(); ++i) {
    args.x.push_back(memory.take(spec.x[i], spec.x[i].pitch));
    const bool wanted = training && i < spec.wants_dx.size() && spec.wants_dx[i];
    args.dx.push_back(wanted ? memory.take(spec.x[i], spec.x[i].gradient_pitch) : Tensor{});
  }
  for (const TensorSpec& w : spec.w) {
    args.w.push_back(memory.take(w, w.pitch));
    args.dw.push_back(training ? memory.take(w, w.pitch) : Tensor{});
  }
  args.y = memory.take(spec.y, spec.y.pitch);
  if (training) args.dy = memory.take(spec.y, spec.y.gradient_pitch);
  unit.tensors_bytes = memory.taken_bytes();
  args.saved = memory.take(lowered.saved_bytes);
  args.scratch = memory.take(lowered.backward_bytes);
  unit.bytes = memory.taken_bytes();
  return unit;
}

}  // namespace lamina
