// The initial numbers of parameters, for lamina/initialisers.h.

#include "lamina/initialisers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "lamina/error.h"
#include "lamina/random.h"

namespace lamina {
namespace {

struct Named {
  const char* name;
  void (*fill)(std::span<double> out, const Shape& shape, Fans fans, std::uint64_t key);
};

constexpr double embedding_limit = 0.05;

void fill_with(std::span<double> out, double value) { std::fill(out.begin(), out.end(), value); }

const std::array<Named, 9> initialisers = {{
    {"glorot_uniform",
     [](std::span<double> out, const Shape&, Fans fans, std::uint64_t key) { fill_glorot_uniform(out, fans, key); }},
    {"he_normal",
     [](std::span<double> out, const Shape&, Fans fans, std::uint64_t key) { fill_he_normal(out, fans, key); }},
    {"layer_scale", [](std::span<double> out, const Shape&, Fans, std::uint64_t) { fill_with(out, 1e-6); }},
    {"ones", [](std::span<double> out, const Shape&, Fans, std::uint64_t) { fill_with(out, 1); }},
    {"orthogonal", [](std::span<double> out, const Shape& shape, Fans,
                      std::uint64_t key) { fill_orthogonal(out, shape.n, shape.image(), key); }},
    {"prelu", [](std::span<double> out, const Shape&, Fans, std::uint64_t) { fill_with(out, 0.25); }},
    {"uniform", [](std::span<double> out, const Shape&, Fans,
                   std::uint64_t key) { fill_uniform_between(out, -embedding_limit, embedding_limit, key); }},
    {"unit_forget_bias", [](std::span<double> out, const Shape&, Fans, std::uint64_t) { fill_unit_forget_bias(out); }},
    {"zeros", [](std::span<double> out, const Shape&, Fans, std::uint64_t) { fill_with(out, 0); }},
}};

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

Fans conv_fans(const Shape& filters) {
  return {static_cast<double>(filters.image()), static_cast<double>(filters.n * filters.plane())};
}

Fans dense_fans(const Shape& weight) { return {static_cast<double>(weight.image()), static_cast<double>(weight.n)}; }

void fill_he_normal(std::span<double> out, Fans fans, std::uint64_t key, std::uint64_t first) {
  fill_normal(out, key, first);
  const double deviation = std::sqrt(2 / fans.in);
  for (double& value : out) value *= deviation;
}

void fill_glorot_uniform(std::span<double> out, Fans fans, std::uint64_t key) {
  const double limit = std::sqrt(6 / (fans.in + fans.out));
  fill_uniform_between(out, -limit, limit, key);
}

void fill_uniform_between(std::span<double> out, double low, double high, std::uint64_t key) {
  if (!(low < high && std::isfinite(low) && std::isfinite(high)))
    throw UsageError("fill_uniform_between: from " + std::to_string(low) + " to " + std::to_string(high) +
                     " is no range of finite numbers");
  fill_uniform(out, key);
  for (double& value : out) value = low + (high - low) * value;
}

void fill_orthogonal(std::span<double> out, std::int64_t rows, std::int64_t columns, std::uint64_t key) {
  if (rows < 1 || columns < 1 || static_cast<std::uint64_t>(rows) > out.size() ||
      out.size() / static_cast<std::uint64_t>(rows) != static_cast<std::uint64_t>(columns) ||
      out.size() % static_cast<std::uint64_t>(rows) != 0) {
    throw UsageError("fill_orthogonal: " + std::to_string(rows) + " x " + std::to_string(columns) + " is not " +
                     std::to_string(out.size()) + " elements");
  }
  // The vectors of the shorter side, each contiguous.
  const auto count = static_cast<std::size_t>(std::min(rows, columns));
  const auto length = static_cast<std::size_t>(std::max(rows, columns));
  std::vector<double> vectors(out.size());
  fill_normal(vectors, key);
  const auto vector = [&](std::size_t i) { return std::span(vectors).subspan(i * length, length); };
  for (std::size_t i = 0; i < count; ++i) {
    const std::span<double> v = vector(i);
    for (int turn = 0; turn < 2; ++turn) {  // the second turn removes the rounding errors of the first
      for (std::size_t j = 0; j < i; ++j) {
        const double share = dot(v, vector(j));
        for (std::size_t k = 0; k < length; ++k) v[k] -= share * vector(j)[k];
      }
      const double norm = std::sqrt(dot(v, v));
      for (double& value : v) value /= norm;
    }
  }
  if (rows <= columns) {
    std::copy(vectors.begin(), vectors.end(), out.begin());
    return;
  }
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t k = 0; k < length; ++k) out[k * count + i] = vectors[i * length + k];
}

void fill_unit_forget_bias(std::span<double> out) {
  if (out.size() % 4 != 0)
    throw UsageError("fill_unit_forget_bias: " + std::to_string(out.size()) + " elements are not four gates");
  const std::size_t hidden = out.size() / 4;
  fill_with(out, 0);
  fill_with(out.subspan(hidden, hidden), 1);
}

std::vector<std::string> initialiser_names() {
  std::vector<std::string> names;
  for (const Named& known : initialisers) names.emplace_back(known.name);
  return names;
}

void initialise(std::span<double> out, std::string_view name, const Shape& shape, Fans fans, std::uint64_t key) {
  if (shape.count() < 0 || static_cast<std::uint64_t>(shape.count()) != out.size())
    throw UsageError("initialise: " + to_string(shape) + " is not " + std::to_string(out.size()) + " elements");
  for (const Named& known : initialisers)
    if (name == known.name) return known.fill(out, shape, fans, key);
  throw UsageError("no initialiser is called \"" + std::string(name) + "\"; " + near_names(name, initialiser_names()));
}

}  // namespace lamina
