// The initial numbers of a plan.

#include "initial.h"

#include <algorithm>
#include <cstddef>
#include <thread>
#include <vector>

#include "lamina/initialisers.h"
#include "lamina/random.h"
#include "lib/core/system/usable_threads.h"

namespace lamina::planner {
namespace {

/// The images first, first + 1, ... of a tensor.
Tensor images_of(const Tensor& tensor, int first, int count) {
  Tensor part = tensor;
  part.shape.n = count;
  const std::int64_t between_images =
      tensor.layout == Layout::nchw ? tensor.pitch : tensor.pitch * tensor.shape.plane();
  part.data =
      static_cast<std::byte*>(tensor.data) + static_cast<std::size_t>(first * between_images) * size_of(tensor.dtype);
  return part;
}

/// Sets every element of a tensor, in slices of about a MiB, one for each thread, so that little memory is needed
/// besides the plan. `numbers(out, first)` gives elements first, first + 1, ... in the order n, c, h, w. The threads
/// draw the numbers, and this thread copies them to the device.
template <class Numbers>
void fill(Backend& backend, const Tensor& tensor, Numbers&& numbers) {
  const std::int64_t image = tensor.shape.image();
  const std::int64_t slice_elements = std::int64_t{1} << 17;
  const auto images_at_once = static_cast<int>(std::clamp<std::int64_t>(slice_elements / image, 1, tensor.shape.n));
  const int slices = (tensor.shape.n - 1) / images_at_once + 1;
  // usable_threads() reads files, so it is called only if needed
  const int threads_at_once = slices == 1 ? 1 : std::min(slices, usable_threads());
  std::vector<std::vector<double>> drawn(static_cast<std::size_t>(threads_at_once));
  for (int n = 0; n < tensor.shape.n;) {
    if (backend.while_planning) backend.while_planning();
    std::vector<Tensor> parts;
    std::vector<std::jthread> threads;
    for (std::vector<double>& values : drawn) {
      if (n >= tensor.shape.n) break;
      parts.push_back(images_of(tensor, n, std::min(images_at_once, tensor.shape.n - n)));
      values.resize(static_cast<std::size_t>(parts.back().shape.count()));
      const auto draw = [&numbers, &values, first = static_cast<std::uint64_t>(n * image)] {
        numbers(std::span<double>(values), first);
      };
      n += parts.back().shape.n;
      if (drawn.size() == 1)
        draw();
      else
        threads.emplace_back(draw);
    }
    threads.clear();
    for (std::size_t i = 0; i < parts.size(); ++i)
      upload(backend.device(), parts[i], std::span<const double>(drawn[i]));
  }
}

void fill_constant(Backend& backend, const Tensor& tensor, double value) {
  fill(backend, tensor, [&](std::span<double> out, std::uint64_t) { std::fill(out.begin(), out.end(), value); });
}

void fill_random(Backend& backend, const Tensor& tensor, std::uint64_t key) {
  fill(backend, tensor, [&](std::span<double> out, std::uint64_t first) { fill_normal(out, key, first); });
}

/// Fills an input with whole numbers below `count` or, if count is 0, with normal numbers.
void fill_input(Backend& backend, const Tensor& tensor, std::int64_t count, std::uint64_t key) {
  if (count == 0) return fill_random(backend, tensor, key);
  fill(backend, tensor,
       [&](std::span<double> out, std::uint64_t first) { fill_whole_numbers(out, count, key, first); });
}

/// The key of the numbers of the tensor with this name.
std::uint64_t key(std::uint64_t seed, const std::string& name) { return hash(name) ^ philox(seed, 0, 0)[0]; }

}  // namespace

void fill_whole_numbers(std::span<double> out, std::int64_t count, std::uint64_t key, std::uint64_t first) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::uint64_t element = first + i, word = philox(key, element / 4, 0)[element % 4];
    out[i] = static_cast<double>(word * static_cast<std::uint64_t>(count) >> 32);
  }
}

void fill_stored(const Plan& plan) {
  Backend& backend = plan.backend();
  for (const bool of_state : {false, true})
    for (const Stored& its : of_state ? plan.graph().states() : plan.graph().parameters()) {
      const Op& op = plan.graph().nodes()[static_cast<std::size_t>(its.first.node)].op;
      const std::size_t index = its.first.index;
      const Tensor w = of_state ? plan.state(its.name) : plan.parameter(its.name);
      if (w.dtype == DType::u64)
        backend.device().fill(w.data, 0, static_cast<std::size_t>(w.shape.count()) * size_of(w.dtype));
      else if (of_state && !its.fixed && std::holds_alternative<BatchNorm>(op))
        fill_constant(backend, w, index == 0 ? 0 : 1);  // a running mean, a running variance
      else if (is_norm(op) || std::holds_alternative<ScaleShift>(op))
        fill_constant(backend, w, index == 0 ? 1 : 0);
      else if (std::holds_alternative<PRelu>(op))
        fill_constant(backend, w, 0.25);
      else if (index > 0 && w.shape == Shape{1, w.shape.c, 1, 1})
        fill_constant(backend, w, 0);
      else
        fill(backend, w, [&](std::span<double> out, std::uint64_t first) {
          fill_he_normal(out, conv_fans(w.shape), key(plan.options().seed, its.name), first);
        });
    }
}

}  // namespace lamina::planner

namespace lamina {

void draw_inputs(const Plan& plan, std::uint64_t seed) {
  Backend& backend = plan.backend();
  const auto& nodes = plan.graph().nodes();
  const std::vector<std::int64_t> numbers = whole_numbers(plan.graph());
  for (std::size_t i = 0; i < nodes.size(); ++i)
    if (std::holds_alternative<Input>(nodes[i].op))
      planner::fill_input(backend, plan.input(nodes[i].name), numbers[i], planner::key(seed, nodes[i].name));
  const std::string& last = nodes.back().name;
  if (plan.options().mode != Mode::training || !plan.gradient(last)) return;
  constexpr double of_loss[] = {1, 0};  // the gradients of loss and accuracy
  if (is_loss(nodes.back().op)) return upload(backend.device(), plan.output_gradient(), std::span(of_loss));
  planner::fill_random(backend, plan.output_gradient(), planner::key(seed, last + ".gradient"));
}

}  // namespace lamina
