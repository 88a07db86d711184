#pragma once
// Initial values of parameters, by name. Each value is a function of a key alone, drawn as in lamina/random.h.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lamina/api.h"
#include "lamina/shape.h"

namespace lamina {

/// Number of terms in the sums that a weight takes part in: the sum for an output (forward), and the sum for an input's
/// gradient (backward). Counted as in Keras (keras/initializers.py, _compute_fans).
struct Fans {
  double in = 1, out = 1;
};

/// The fans of filters {k, c / groups, r, s}: c / groups r s and k r s.
LAMINA_API Fans conv_fans(const Shape& filters);

/// The fans of a fully connected weight {k, c, h, w}: c h w, as its input is flattened, and k. Also the fans of a
/// recurrent op's weights, {4 hidden, in, 1, 1} in an LSTM: all gates count as one matrix.
LAMINA_API Fans dense_fans(const Shape& weight);

/// Normal, variance 2 / fans.in (He et al., Delving Deep into Rectifiers, 2015). `out` gets the elements first, first +
/// 1, ... of the tensor, so a tensor can be filled in slices.
LAMINA_API void fill_he_normal(std::span<double> out, Fans, std::uint64_t key, std::uint64_t first = 0);

/// Uniform in [-l, l), l = sqrt(6 / (fans.in + fans.out)) (Glorot, Bengio, Understanding the difficulty of training
/// deep feedforward neural networks, 2010). Keras' default.
LAMINA_API void fill_glorot_uniform(std::span<double> out, Fans, std::uint64_t key);

/// Uniform in [low, high). Throws UsageError unless low < high and both are finite.
LAMINA_API void fill_uniform_between(std::span<double> out, double low, double high, std::uint64_t key);

/// A matrix, rows first, with orthonormal rows, or with orthonormal columns if it has more rows than columns. All such
/// matrices are equally likely (Saxe et al., Exact solutions to the nonlinear dynamics of learning in deep linear
/// neural networks, 2013). Normal numbers are orthonormalised by Gram-Schmidt, twice, in f64: products differ from 0
/// and 1 by a few 1e-16. For recurrent weights, {4 hidden, hidden} in an LSTM: all gates together, as in Keras. Takes
/// min(rows, columns)^2 max(rows, columns) multiply-adds, twice. Throws UsageError unless rows and columns are at least
/// 1 and fill `out`.
LAMINA_API void fill_orthogonal(std::span<double> out, std::int64_t rows, std::int64_t columns, std::uint64_t key);

/// The bias of an LSTM, 4 hidden numbers in the order of gates i, f, g, o: 1 for the forget gate f, 0 otherwise. Throws
/// UsageError unless `out` holds four gates.
LAMINA_API void fill_unit_forget_bias(std::span<double> out);

/// The names that initialise() takes: "glorot_uniform", "he_normal", "layer_scale", "ones", "orthogonal", "prelu",
/// "uniform", "unit_forget_bias", "zeros".
LAMINA_API std::vector<std::string> initialiser_names();

/// Fills a parameter of shape `shape` by the initialiser of that name. "uniform" is Keras' for embeddings, from -0.05
/// to 0.05; "layer_scale" is 1e-6, as in ConvNeXt; "prelu" is 1/4; "orthogonal" uses a matrix of shape.n rows. Throws
/// UsageError for an unknown name, and unless the shape fills `out`.
LAMINA_API void initialise(std::span<double> out, std::string_view name, const Shape& shape, Fans, std::uint64_t key);

}  // namespace lamina
