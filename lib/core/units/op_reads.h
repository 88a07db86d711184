#pragma once
// What each pass of an op reads at least, besides dy: the basis of every count of bytes.

#include <cstdint>

#include "lamina/op.h"

namespace lamina {

struct OpReads {
  enum class Inputs : std::uint8_t {
    none,
    first,
    all,
    others,  ///< of two inputs, for the gradient of one the other
  };
  Inputs x = Inputs::none;
  bool y = false;
  int params = 0;      ///< the first so many parameters
  bool state = false;  ///< all of it
};
OpReads op_reads(const Op&, Pass);

/// The part of an input of shape `x` that forward reads: of a slice, its channels.
Shape forward_reads(const Op&, const Shape& x, const Shape& y);

/// The part of a parameter that forward reads: of an embedding's table, a row per id.
Shape forward_reads_parameter(const Op&, const std::vector<Shape>& x, Shape parameter);

/// The part of dy that the gradient of an input of shape `x` needs: of a value padded by a number, what is inside.
Shape backward_reads_dy(const Op&, const Shape& x, const Shape& y);

}  // namespace lamina
