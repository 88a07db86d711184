// How a product is cut for threads.

#include "gemm.h"

namespace lamina::eigen {

Partition partition(std::int64_t columns, std::int64_t rows, int threads, int lanes, int tile_rows) {
  constexpr std::int64_t packing_rows = 8;  // packing an element costs about as much as using it in so many rows
  Partition best;
  std::int64_t best_cost = 0;
  for (int row_parts = 1; row_parts <= threads; ++row_parts) {
    if (threads % row_parts != 0) continue;
    const int column_parts = threads / row_parts;
    const std::int64_t widest = divide_up(divide_up(columns, lanes), column_parts) * lanes;
    const std::int64_t tallest = divide_up(divide_up(rows, tile_rows), row_parts) * tile_rows;
    const std::int64_t cost = widest * (tallest + packing_rows);
    if (row_parts == 1 || cost < best_cost) {
      best = {column_parts, row_parts};
      best_cost = cost;
    }
  }
  return best;
}

}  // namespace lamina::eigen
