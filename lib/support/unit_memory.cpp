// A single unit in lent memory.

#include "unit_memory.h"

#include "rounding.h"

namespace lamina {
namespace {

/// Allocates memory from front to back, or only counts if there is none.
class Lent {
 public:
  explicit Lent(void* at) : at_(static_cast<char*>(at)) {}

  Tensor tensor(Operand, std::size_t, const TensorSpec& spec, std::int64_t pitch) {
    const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
    void* const data = take(static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype));
    tensors_bytes_ = next_;
    return {data, spec.shape, spec.dtype, spec.layout, pitch};
  }
  void* block(Block, std::size_t bytes) { return take(bytes); }

  std::size_t tensors_bytes() const { return tensors_bytes_; }
  std::size_t bytes() const { return last_ + last_bytes_; }

 private:
  void* take(std::size_t bytes) {
    last_ = next_;
    last_bytes_ = bytes;
    next_ += aligned(bytes);
    return at_ == nullptr ? nullptr : at_ + last_;
  }

  char* at_;
  std::size_t next_ = 0, tensors_bytes_ = 0;
  std::size_t last_ = 0, last_bytes_ = 0;  // the block that was taken last
};

}  // namespace

LentUnit lend_unit(const Spec& spec, const Lowered& lowered, void* lent) {
  Lent memory(lent);
  LentUnit unit;
  unit.args = bind_unit(spec, lowered, memory);
  unit.tensors_bytes = memory.tensors_bytes();
  unit.bytes = memory.bytes();
  return unit;
}

}  // namespace lamina
