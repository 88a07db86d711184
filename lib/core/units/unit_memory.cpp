// A single unit in a buffer.

#include "unit_memory.h"

#include "lib/core/numbers/rounding.h"
#include "lib/core/units/scratch_allocator.h"

namespace lamina {
namespace {

/// The tensors and blocks of a unit, consecutively.
class UnitMemory {
 public:
  explicit UnitMemory(void* buffer) : parts_(buffer, block_alignment) {}

  Tensor tensor(Operand, std::size_t, const TensorSpec& spec, std::int64_t pitch) {
    const std::int64_t steps = spec.layout == Layout::nchw ? spec.shape.n : spec.shape.n * spec.shape.plane();
    void* const data = take(static_cast<std::size_t>(steps * pitch) * size_of(spec.dtype));
    return {data, spec.shape, spec.dtype, spec.layout, pitch};
  }
  void* block(Block, std::size_t bytes) { return take(bytes); }

  std::size_t bytes() const { return bytes_; }

 private:
  void* take(std::size_t bytes) {
    bytes_ = parts_.used_bytes() + bytes;
    return parts_.take<std::byte>(static_cast<std::int64_t>(bytes));
  }

  ScratchAllocator parts_;
  std::size_t bytes_ = 0;  // bytes up to the end of the last part
};

}  // namespace

UnitInBuffer bind_in_buffer(const Spec& spec, const Lowered& lowered, void* buffer) {
  UnitMemory memory(buffer);
  UnitInBuffer unit;
  unit.args = bind_unit(spec, lowered, memory);
  unit.bytes = memory.bytes();
  return unit;
}

}  // namespace lamina
