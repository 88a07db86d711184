#pragma once
// The blocks of a convolution's product: it multiplies in them, and kernel_rates() measures one.

#include <cstdint>

namespace lamina::eigen {

constexpr std::int64_t block_row_bytes = 2048;  // of one row of a: eight rows fill a third of a first-level cache
constexpr std::int64_t block_panel_bytes = 512 * 1024;  // of its packed columns: half of a second-level cache

}  // namespace lamina::eigen
