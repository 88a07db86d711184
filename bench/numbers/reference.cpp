// Exact results of a convolution or fully connected op, computed by the definition in f64, and the error of a pass
// against them. Only a sample of the elements is computed, because all elements of a large layer would take minutes.

#include "reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <span>

#include "lamina/random.h"

namespace lamina::bench {
namespace {

constexpr std::int64_t most_elements = 4096, fewest_elements = 256, most_products = std::int64_t{1} << 27;

struct Sum {
  double exact = 0, terms = 0;
  void add(double term) {
    exact += term;
    terms += std::abs(term);
  }
};

Conv as_convolution(const Op& op, const Shape& x) {
  if (const auto* full = std::get_if<FullyConnected>(&op))
    return {.channels = full->outputs, .kernel = {x.h, x.w}, .bias = full->bias};
  return std::get<Conv>(op);
}

struct Problem {
  Conv op;
  Shape x, w, y;

  Problem(const Op& any, const Shape& image) : op(as_convolution(any, image)), x(image) {
    const Inferred inferred = infer(op, {image});
    y = inferred.y;
    w = inferred.params.front();
  }

  static std::size_t at(const Shape& shape, std::int64_t n, int c, int row, int column) {
    return static_cast<std::size_t>(((n * shape.c + c) * shape.h + row) * shape.w + column);
  }

  int row_of_x(int p, int r) const { return p * op.stride.h - op.pad.h + r * op.dilation.h; }
  int column_of_x(int q, int s) const { return q * op.stride.w - op.pad.w + s * op.dilation.w; }
  bool inside(int row, int column) const { return row >= 0 && row < x.h && column >= 0 && column < x.w; }

  Sum forward(const Operands& in, const std::array<int, 4>& place) const {
    const auto [n, k, p, q] = place;
    Sum sum;
    if (op.bias && !in.bias.empty()) sum.add(in.bias[static_cast<std::size_t>(k)]);
    const int first = k / (y.c / op.groups) * w.c;
    for (int c = 0; c < w.c; ++c)
      for (int r = 0; r < w.h; ++r)
        for (int s = 0; s < w.w; ++s) {
          const int row = row_of_x(p, r), column = column_of_x(q, s);
          if (inside(row, column)) sum.add(in.w[at(w, k, c, r, s)] * in.x[at(x, n, first + c, row, column)]);
        }
    return sum;
  }

  /// The output row (or column) whose window row `r` is at input row `h`; -1: there is none.
  static int source(int h, int pad, int r, int dilation, int stride, int extent) {
    const int reached = h + pad - r * dilation;
    return reached >= 0 && reached % stride == 0 && reached / stride < extent ? reached / stride : -1;
  }

  Sum backward_data(const Operands& in, const std::array<int, 4>& place) const {
    const auto [n, c, row, column] = place;
    Sum sum;
    const int filters = y.c / op.groups, group = c / w.c;
    for (int r = 0; r < w.h; ++r)
      for (int s = 0; s < w.w; ++s) {
        const int p = source(row, op.pad.h, r, op.dilation.h, op.stride.h, y.h);
        const int q = source(column, op.pad.w, s, op.dilation.w, op.stride.w, y.w);
        if (p < 0 || q < 0) continue;
        for (int k = group * filters; k < (group + 1) * filters; ++k)
          sum.add(in.w[at(w, k, c % w.c, r, s)] * in.dy[at(y, n, k, p, q)]);
      }
    return sum;
  }

  Sum backward_params(const Operands& in, const std::array<int, 4>& place) const {
    const auto [k, c, r, s] = place;
    Sum sum;
    const int channel = k / (y.c / op.groups) * w.c + c;
    for (int n = 0; n < y.n; ++n)
      for (int p = 0; p < y.h; ++p)
        for (int q = 0; q < y.w; ++q) {
          const int row = row_of_x(p, r), column = column_of_x(q, s);
          if (inside(row, column)) sum.add(in.dy[at(y, n, k, p, q)] * in.x[at(x, n, channel, row, column)]);
        }
    return sum;
  }

  const Shape& result(Pass pass) const { return pass == Pass::forward ? y : pass == Pass::backward_data ? x : w; }

  /// The largest number of products in the sum of one element of the result.
  std::int64_t products(Pass pass) const {
    switch (pass) {
      case Pass::forward: return w.image();
      case Pass::backward_data: return w.plane() * (y.c / op.groups);
      default: return y.n * y.plane();
    }
  }
};

std::array<int, 4> place_of(const Shape& shape, std::int64_t element) {
  const std::int64_t plane = shape.plane(), in_plane = element % plane, planes = element / plane;
  return {static_cast<int>(planes / shape.c), static_cast<int>(planes % shape.c), static_cast<int>(in_plane / shape.w),
          static_cast<int>(in_plane % shape.w)};
}

std::vector<std::int64_t> sample(const Shape& shape, std::int64_t products) {
  const std::int64_t count = shape.count();
  const std::int64_t wanted =
      std::min(count, std::clamp(most_products / std::max<std::int64_t>(products, 1), fewest_elements, most_elements));
  std::set<std::int64_t> chosen;
  if (wanted == count) {
    for (std::int64_t i = 0; i < count; ++i) chosen.insert(i);
  } else {
    for (const std::int64_t plane : {std::int64_t{0}, count - shape.plane()})
      for (const int row : {0, shape.h - 1})
        for (const int column : {0, shape.w - 1}) chosen.insert(plane + std::int64_t{row} * shape.w + column);
    std::vector<double> random(static_cast<std::size_t>(wanted));
    for (std::uint64_t round = 0; static_cast<std::int64_t>(chosen.size()) < wanted; ++round) {
      fill_uniform(random, hash("elements of a result") + round);
      for (const double number : random) {
        if (static_cast<std::int64_t>(chosen.size()) == wanted) break;
        chosen.insert(std::min(count - 1, static_cast<std::int64_t>(number * static_cast<double>(count))));
      }
    }
  }
  return {chosen.begin(), chosen.end()};
}

constexpr std::size_t block_bytes = 4 << 20;

/// The values of single elements of a tensor. `elements`: places in n, c, h, w.
std::vector<double> values_of(Device& device, const Tensor& tensor, const std::vector<std::int64_t>& elements) {
  const Shape& shape = tensor.shape;
  std::vector<double> values(elements.size());
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const std::int64_t n = elements[i] / shape.image(), in_image = elements[i] % shape.image();
    const std::int64_t c = in_image / shape.plane(), pixel = in_image % shape.plane();
    const std::int64_t at =
        tensor.layout == Layout::nchw ? n * tensor.pitch + in_image : (n * shape.plane() + pixel) * tensor.pitch + c;
    Tensor one{tensor.as<char>() + at * static_cast<std::int64_t>(size_of(tensor.dtype)), {}, tensor.dtype};
    one.pitch = 1;
    download(device, std::span<double>(&values[i], 1), one);
  }
  return values;
}

}  // namespace

bool has_reference(const Op& op) {
  return std::holds_alternative<Conv>(op) || std::holds_alternative<FullyConnected>(op);
}

Reference make_reference(const Op& op, const Shape& x, Pass pass, const Operands& operands) {
  const Problem problem(op, x);
  Reference reference;
  reference.elements = sample(problem.result(pass), problem.products(pass));
  for (const std::int64_t element : reference.elements) {
    const std::array<int, 4> place = place_of(problem.result(pass), element);
    const Sum sum = pass == Pass::forward         ? problem.forward(operands, place)
                    : pass == Pass::backward_data ? problem.backward_data(operands, place)
                                                  : problem.backward_params(operands, place);
    reference.exact.push_back(sum.exact);
    reference.terms.push_back(sum.terms);
  }
  return reference;
}

ErrorFound compare(const Reference& reference, const std::vector<double>& computed) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  ErrorFound found;
  found.elements = reference.elements.size();
  double greatest = 0, largest = 0;
  for (std::size_t i = 0; i < reference.elements.size(); ++i) {
    const double error = std::abs(computed[i] - reference.exact[i]);
    largest = std::max(largest, std::abs(reference.exact[i]));
    if (error == 0) continue;
    greatest = std::isnan(error) ? infinite : std::max(greatest, error);
    const double of_terms = std::isnan(error) || reference.terms[i] <= 0 ? infinite : error / reference.terms[i];
    found.of_terms = std::max(found.of_terms, of_terms);
  }
  if (greatest > 0) found.of_largest = largest > 0 ? greatest / largest : infinite;
  return found;
}

std::vector<double> values_of(Device& device, const Tensor& tensor) {
  std::vector<double> values(static_cast<std::size_t>(tensor.shape.count()));
  download(device, std::span<double>(values), tensor);
  return values;
}

std::vector<Tensor> results_of(Pass pass, const Args& args) {
  if (pass == Pass::forward) return {args.y};
  return pass == Pass::backward_params ? args.dw : args.dx;
}

std::uint64_t bits_of(Device& device, const std::vector<Tensor>& tensors) {
  std::vector<std::uint64_t> block(block_bytes / sizeof(std::uint64_t));
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const Tensor& tensor : tensors) {
    if (!tensor) continue;
    const std::size_t bytes = static_cast<std::size_t>(tensor.shape.count()) * size_of(tensor.dtype);
    for (std::size_t at = 0; at < bytes; at += block_bytes) {
      const std::size_t here = std::min(block_bytes, bytes - at);
      block[(here - 1) / sizeof(std::uint64_t)] = 0;  // the last word may be filled in part
      device.download(block.data(), tensor.as<char>() + at, here);
      for (std::size_t i = 0; i * sizeof(std::uint64_t) < here; ++i) {
        hash = (hash ^ block[i]) * 0x9E3779B97F4A7C15U;
        hash ^= hash >> 32;
      }
    }
  }
  return hash;
}

Reference reference_of(Device& device, const Op& op, Pass pass, const Args& args) {
  Operands operands;
  if (pass != Pass::backward_data) operands.x = values_of(device, args.x[0]);
  if (pass != Pass::backward_params) operands.w = values_of(device, args.w[0]);
  if (pass == Pass::forward && args.w.size() > 1) operands.bias = values_of(device, args.w[1]);
  if (pass != Pass::forward) operands.dy = values_of(device, args.dy);
  return make_reference(op, args.x[0].shape, pass, operands);
}

ErrorFound error_of(Device& device, Pass pass, const Args& args, const Reference& reference) {
  return compare(reference, values_of(device, results_of(pass, args).front(), reference.elements));
}

}  // namespace lamina::bench
