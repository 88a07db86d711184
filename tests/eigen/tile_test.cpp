// Register tiles on every instruction set: they sum any number of terms, and write nothing else.

#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "tests/eigen/sets.h"

using namespace lamina::test;

namespace {

constexpr std::int64_t deepest = 53;
constexpr int wall = 1000;  // value of c's elements before the sums

/// The arguments of a call of a tile kernel.
struct Way {
  std::int64_t depth, run;
  int rows, vectors;
  bool columns, prefetches, epilogue;
};

template <class T>
constexpr eigen::Bounds<T> bounds{T{0}, T{20}};

template <class T>
void check_tile(const eigen::MicroKernels<T>& kernels, const Way& way) {
  constexpr std::int64_t gap = 3;  // elements between runs, rows and columns of a, and between rows of the panel
  const std::int64_t runs = (way.depth + way.run - 1) / way.run, run_pitch = way.run + gap;
  const std::int64_t lda = way.columns ? kernels.rows + gap : runs * run_pitch;
  const std::int64_t ldb = kernels.width() + (way.prefetches ? gap : 0), ldc = (kernels.vectors + 1) * kernels.lanes;
  const std::vector<T> a = small_integers<T>(way.columns ? way.depth * lda : kernels.rows * lda, 5);
  const std::vector<T> b = small_integers<T>(way.depth * ldb, 3);
  const std::vector<T> scale = small_integers<T>(kernels.rows, 1), bias = small_integers<T>(kernels.rows, 2);
  std::vector<T> got(static_cast<std::size_t>((kernels.rows + 1) * ldc), T{wall}), want = got;
  for (std::int64_t i = 0; i < way.rows; ++i) {
    const auto row = static_cast<std::size_t>(i);
    for (std::int64_t j = 0; j < way.vectors * kernels.lanes; ++j) {
      T sum = 0;
      for (std::int64_t k = 0; k < way.depth; ++k) {
        const std::int64_t at = way.columns ? k * lda + i : i * lda + k / way.run * run_pitch + k % way.run;
        sum += a[static_cast<std::size_t>(at)] * b[static_cast<std::size_t>(k * ldb + j)];
      }
      T& c = want[static_cast<std::size_t>(i * ldc + j)];
      c = way.epilogue ? std::clamp(scale[row] * sum + bias[row] + c, bounds<T>.low, bounds<T>.high) : sum;
    }
  }
  eigen::Tile<T> tile{.depth = way.depth,
                      .a = a.data(),
                      .lda = lda,
                      .rows = way.rows,
                      .b = b.data(),
                      .ldb = ldb,
                      .c = got.data(),
                      .ldc = ldc};
  if (way.run < way.depth) {
    tile.run = way.run;
    tile.run_pitch = run_pitch;
  }
  const eigen::Epilogue<T> epilogue{.scale = scale.data(), .bias = bias.data(), .add = true, .bounds = &bounds<T>};
  if (way.epilogue) tile.epilogue = &epilogue;
  if (way.prefetches) tile.prefetch = {.a = lda, .c = ldc, .panel = b.data(), .first = 1, .rows = 3};
  const auto& functions = (way.columns ? kernels.tile_of_columns : kernels.tile)[way.rows <= kernels.rows / 2 ? 1 : 0];
  functions[way.vectors - 1](tile);
  INFO(way.depth << " terms in runs of " << way.run << ", " << way.rows << " rows by " << way.vectors << " vectors of "
                 << kernels.lanes << (way.columns ? ", a by columns" : "") << (way.prefetches ? ", prefetches" : "")
                 << (way.epilogue ? ", with an epilogue" : ""));
  REQUIRE((got == want));
}

template <class T>
void check_set(const eigen::MicroKernels<T>& kernels) {
  for (std::int64_t depth = 1; depth <= deepest; depth += depth < 36 ? 1 : 8) {
    for (int rows = 1; rows <= kernels.rows; ++rows) {
      for (int vectors = 1; vectors <= kernels.vectors; ++vectors) {
        for (const bool prefetches : {false, true}) {
          for (const bool epilogue : {false, true}) {
            check_tile(kernels, {depth, depth, rows, vectors, true, prefetches, epilogue});
            for (const std::int64_t run : {depth, std::int64_t{1}, std::int64_t{7}, std::int64_t{18}})
              check_tile(kernels, {depth, std::min(run, depth), rows, vectors, false, prefetches, epilogue});
          }
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("a register tile sums any number of terms, in runs of any length, and writes nothing else") {
  check_micro_kernels([](const auto& kernels) { check_set(kernels); });
}
