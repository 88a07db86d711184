#pragma once
// What the algorithms winograd_2x2 and winograd_4x4 offer to the file that lowers convolutions.

#include <cstddef>
#include <string>

#include "conv.h"

namespace lamina::eigen {

constexpr const char* winograd_2x2_name = "winograd_2x2";
constexpr const char* winograd_4x4_name = "winograd_4x4";

const char* winograd_name(int tile);

/// Why the algorithm with tiles of 2x2 or 4x4 cannot do the convolution, or nothing.
std::string winograd_refusal(const ConvUnit&, int tile);

/// Whether the larger of the tiles that are not refused should be the fastest: see docs/ops/conv.md.
bool winograd_pays(const ConvUnit&);

/// A pass of what is not refused, or prepare, with tiles of 2x2 or 4x4. In inference, a forward pass of few tiles takes
/// filters that prepare transformed. Values of f32 may be in bf16.
Lowered::Step winograd_step(const ConvUnit&, int tile, Pass, const Context&);

/// Bytes that a forward pass wants prepared.
std::size_t winograd_prepared_bytes(const ConvUnit&, int tile, const Context&);

}  // namespace lamina::eigen
