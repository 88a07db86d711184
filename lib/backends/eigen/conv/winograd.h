#pragma once
// What the algorithms winograd_2x2 and winograd_4x4 offer to the file that lowers convolutions.

#include <cstddef>
#include <string>

#include "conv.h"

namespace lamina::eigen {

constexpr const char* winograd_2x2_name = "winograd_2x2";
constexpr const char* winograd_4x4_name = "winograd_4x4";

/// Why the algorithm with tiles of 2x2 or 4x4 cannot do the convolution, or nothing.
std::string winograd_refusal(const ConvProblem&, int tile);

/// Whether the larger of the tiles that are not refused should be the fastest: see docs/ops/conv.md.
bool winograd_pays(const ConvProblem&, DType);

/// A pass of what is not refused, or prepare, with tiles of 2x2 or 4x4. In inference, a forward pass of few tiles takes
/// filters that prepare transformed.
Lowered::Step winograd_step(const ConvProblem&, int tile, DType, Pass, bool inference, const Context&);

/// Bytes that a forward pass wants prepared.
std::size_t winograd_prepared_bytes(const ConvProblem&, int tile, DType, const Context&);

}  // namespace lamina::eigen
