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
    others,  ///< the other input, for the gradient of one of two inputs
  };
  Inputs x = Inputs::none;
  bool y = false;
  int params = 0;      ///< number of parameters that it reads, from the first on
  bool state = false;  ///< whether it reads the whole state
};
OpReads op_reads(const Op&, Pass);

/// The part of an input of shape `x` that forward reads. For a Slice it is as large as y.
Shape forward_reads(const Op&, const Shape& x, const Shape& y);

/// The part of a parameter that forward reads. For an embedding's table it is a row for each id.
Shape forward_reads_parameter(const Op&, const std::vector<Shape>& x, Shape parameter);

/// The part of dy that the gradient of an input of shape `x` needs. For a Pad by value it is the part inside.
Shape backward_reads_dy(const Op&, const Shape& x, const Shape& y);

}  // namespace lamina
