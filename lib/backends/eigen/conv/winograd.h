#pragma once
// The interface of the algorithms winograd_2x2 and winograd_4x4, for the table of conv.cpp.

#include <cstddef>
#include <string>

#include "conv.h"

namespace lamina::eigen {

constexpr const char* winograd_2x2_name = "winograd_2x2";
constexpr const char* winograd_4x4_name = "winograd_4x4";

const char* winograd_name(int tile);

/// Whether Winograd with the larger of the tiles that are not refused is likely the fastest (docs/ops/conv.md).
bool winograd_pays(const ConvUnit&);

/// A pass or prepare of a convolution that is not refused, with tiles of 2x2 or 4x4. In inference, a forward pass of
/// few tiles takes filters that prepare transformed. Values may be in bf16 instead of f32.
Lowered::Step winograd_step(const ConvUnit&, int tile, Pass, const Context&);

/// Bytes that a forward pass wants prepared.
std::size_t winograd_prepared_bytes(const ConvUnit&, int tile, const Context&);

}  // namespace lamina::eigen
