// Sets the tensors of a unit that is measured, and says what its memory lacks.

#include "measured_unit.h"

#include <algorithm>
#include <span>
#include <vector>

#include "lamina/random.h"
#include "lib/core/units/unit_memory.h"

namespace lamina {
namespace {

/// Fills a tensor and its gaps.
void fill(Device& device, const Tensor& to, std::span<const double> numbers) {
  const std::int64_t steps = to.layout == Layout::nchw ? to.shape.n : to.shape.n * to.shape.plane();
  const auto count = to ? static_cast<std::size_t>(steps * to.pitch) : 0;
  for (std::size_t at = 0; at < count; at += numbers.size()) {
    const std::size_t here = std::min(numbers.size(), count - at);
    Tensor piece{to.as<char>() + at * size_of(to.dtype), {1, 1, 1, static_cast<int>(here)}, to.dtype};
    piece.pitch = static_cast<std::int64_t>(here);
    upload(device, piece, numbers.first(here));
  }
}

}  // namespace

std::string lacks(std::size_t needed, std::size_t buffer) {
  return "needs " + std::to_string(needed) + " bytes to be measured in, and gets " + std::to_string(buffer);
}

void draw_numbers(Device& device, const Spec& spec, void* buffer) {
  const Args unit = bind_in_buffer(spec, {}, buffer).args;
  std::vector<double> numbers(1 << 16);
  fill_normal(numbers, 1);
  for (const std::vector<Tensor>& tensors : {unit.x, unit.dx, unit.w, unit.dw, {unit.y, unit.dy}})
    for (const Tensor& tensor : tensors) fill(device, tensor, numbers);
  fill_uniform(numbers, 2);
  for (const Tensor& state : unit.state) {
    if (state.dtype == DType::u64)
      device.fill(state.data, 0, static_cast<std::size_t>(state.shape.count()) * size_of(state.dtype));
    else
      fill(device, state, numbers);
  }
}

}  // namespace lamina
