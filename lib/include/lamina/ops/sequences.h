#pragma once
// Tables of vectors, and recurrent layers.

#include <cstdint>

namespace lamina {

/// y[n,f,h,w] = weight[x[n,0,h,w], f]: each id is replaced by its row of a table.
///
/// x: N x 1 x H x W, whole numbers from 0 to vocabulary - 1       weight: vocabulary x features x 1 x 1
/// y: N x features x H x W; a sequence is {images, features, steps, 1}
/// Ids have no gradient. The gradient of the weight is dense: rows without an id get 0. Equal ids add in the order of
/// n, h, w. An id that is out of range makes its y NaN and adds to no gradient; no memory outside the table is touched.
/// ShapeError: x has several channels; vocabulary below 1 or above 2^24 (what f32 counts exactly), features below 1.
struct Embedding {
  int vocabulary;
  int features;
  bool operator==(const Embedding&) const = default;
};

/// What a recurrent layer computes at each step: long short-term memory or a gated recurrent unit.
enum class Cell : std::uint8_t { lstm, gru };

/// The function of the gates (i, f, o of an LSTM; r, z of a GRU), with values from 0 to 1: 1 / (1 + exp(-a)), or
/// min(max(0.2 a + 0.5, 0), 1), whose gradient is 0 outside +-2.5 (Keras' LSTM of 2017).
enum class Gates : std::uint8_t { logistic, hard_sigmoid };

/// The output of a recurrent layer: h of every step, or of the step that it computes last.
enum class Steps : std::uint8_t { all, last };

/// One recurrent layer in one direction. Steps run along the rows of x, or along the columns of one row (`reverse`:
/// from the last to the first). Each step takes h' and c' of the step before; they are 0 at first. W is weight_ih, U is
/// weight_hh, b is the bias, s is the gate function:
///
///     lstm   [i f g o] = W x[t] + U h' + b     i, f, o through s, g through tanh     c = f c' + i g     h = o tanh(c)
///     gru    r = s(W_r x[t] + U_r h' + b_r)     z = s(W_z x[t] + U_z h' + b_z)
///            n = tanh(W_n x[t] + b_n + r (U_n h' + b_m))     h = (1 - z) n + z h'
///
/// x: N x C x T x 1 or N x C x 1 x T     weight_ih: R x C x 1 x 1     weight_hh: R x hidden x 1 x 1
/// R = 4 * hidden: rows of i, then of f, g, o. In a GRU R = 3 * hidden: rows of r, then of z, n, as in PyTorch
/// bias: 1 x 4 hidden x 1 x 1, of i, f, g, o; in a GRU of r, z, n, m
/// y: N x hidden x T x 1, h of step t is at t, also in reverse; with Steps::last N x hidden x 1 x 1
///
/// With `vocabulary` not 0, x is N x 1 x T x 1 and holds ids below it: each id stands for a vector of C = vocabulary
/// channels with a 1 at the id and 0 elsewhere. The parameters are the same; ids have no gradient, and an id out of
/// range makes y NaN from its step on.
///
/// The bias is the sum of PyTorch's bias_ih_l0 and bias_hh_l0. In a GRU r and z are such sums, n is the n of
/// bias_ih_l0, and m is the n of bias_hh_l0. Stacked layers are ops one after another; a bidirectional layer is two ops
/// and a Concat.
///
/// ShapeError: neither H nor W is 1; hidden below 1 or above 2^29 - 1; ids or vocabulary as in Embedding.
struct Recurrent {
  int hidden;
  Cell cell = Cell::lstm;
  Steps steps = Steps::all;
  Gates gates = Gates::logistic;
  bool reverse = false;
  int vocabulary = 0;
  int matrices() const { return cell == Cell::gru ? 3 : 4; }  ///< number of gates with weights in weight_ih
  bool operator==(const Recurrent&) const = default;
};

}  // namespace lamina
