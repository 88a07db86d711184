// Sets the tensors of a unit that is measured, and says what its memory lacks.

#include "measured_unit.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lamina/random.h"
#include "lib/support/units/unit_memory.h"

namespace lamina {
namespace {

void fill(Device& device, void* to, std::size_t bytes, DType dtype, std::span<const double> numbers) {
  const std::size_t size = size_of(dtype), count = bytes / size;
  for (std::size_t at = 0; at < count; at += numbers.size()) {
    const std::size_t here = std::min(numbers.size(), count - at);
    Tensor piece{static_cast<char*>(to) + at * size, {1, 1, 1, static_cast<int>(here)}, dtype};
    piece.pitch = static_cast<std::int64_t>(here);
    upload(device, piece, numbers.first(here));
  }
}

}  // namespace

std::string lacks(std::size_t needed, std::size_t buffer) {
  return "needs " + std::to_string(needed) + " bytes to be measured in, and gets " + std::to_string(buffer);
}

void draw_numbers(Device& device, const Spec& spec, void* buffer) {
  const UnitInBuffer unit = bind_in_buffer(spec, {}, buffer);
  std::vector<double> numbers(1 << 16);
  fill_normal(numbers, 1);
  fill(device, buffer, unit.tensors_bytes, spec.y.dtype, numbers);
  fill_uniform(numbers, 2);
  for (const Tensor& state : unit.args.state) {
    const std::size_t bytes = static_cast<std::size_t>(state.shape.count()) * size_of(state.dtype);
    if (state.dtype == DType::u64)
      device.fill(state.data, 0, bytes);
    else
      fill(device, state.data, bytes, state.dtype, numbers);
  }
}

}  // namespace lamina
