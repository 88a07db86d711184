// Stores of finished sums on every instruction set: each sum is stored at its place, and nothing else is written.

#include "lib/backends/eigen/micro_kernels/micro_kernels.h"
#include "tests/eigen/sets.h"

using namespace lamina::test;

namespace {

constexpr std::int64_t rows = 3, room = 400;  // rows of the output; elements per row
constexpr int edge = 1000;                    // value of the output's elements before the store

/// The elements between and beside the sums: unchanged, 0, or sums from `left`.
enum class Between { kept, zeros, left };

struct PutWay {
  std::int64_t step;
  Between between;
  bool add, bounded;
};

template <class T>
constexpr eigen::Bounds<T> limits{T{0}, T{6}};

template <class T>
eigen::OutputTile<T> finished(const PutWay& way, std::int64_t count) {
  eigen::OutputTile<T> f{.to = nullptr,
                         .ldc = room,
                         .step = way.step,
                         .from = nullptr,
                         .ldf = count,
                         .rows = rows,
                         .count = count,
                         .epilogue = {.add = way.add, .bounds = way.bounded ? &limits<T> : nullptr}};
  if (way.between == Between::zeros) {
    f.width = count * way.step - (way.step > 1 ? count % 2 : 0);  // sometimes with zeros after the last sum
    f.below = 1;
    f.pitch = room / 2;
  }
  return f;
}

/// The expected output, by the definition.
template <class T>
std::vector<T> wanted(const eigen::OutputTile<T>& f) {
  std::vector<T> to(rows * room, T{edge});
  const auto store = [&](std::int64_t at, T value) {
    T& old = to[static_cast<std::size_t>(at)];
    if (f.epilogue.add) value += old;
    old = f.epilogue.bounds == nullptr ? value : std::clamp(value, limits<T>.low, limits<T>.high);
  };
  for (std::int64_t i = 0; i < f.rows; ++i) {
    for (std::int64_t row = 0; row <= f.below; ++row)
      for (std::int64_t j = 0; j < f.width; ++j) to[static_cast<std::size_t>(i * f.ldc + row * f.pitch + j)] = T{0};
    for (std::int64_t j = 0; j < f.count; ++j) {
      const std::int64_t at = i * f.ldc + j * f.step;
      if (f.left != nullptr) store(at, f.left[i * f.left_ld + j]);
      store(f.left != nullptr ? at + 1 : at, f.from[i * f.ldf + j]);
    }
  }
  return to;
}

template <class T>
void check_put(const eigen::MicroKernels<T>& kernels, const PutWay& way) {
  for (std::int64_t count = 1; count <= 3 * kernels.lanes + 2; ++count) {
    INFO(count << " sums, " << way.step << " apart, between " << static_cast<int>(way.between) << ", add " << way.add);
    const std::vector<T> sums = small_integers<T>(rows * count, 1), left = small_integers<T>(rows * count, 5);
    eigen::OutputTile<T> f = finished<T>(way, count);
    f.from = sums.data();
    if (way.between == Between::left) {
      f.left = left.data();
      f.left_ld = count;
    }
    const std::vector<T> want = wanted(f);
    std::vector<T> got(rows * room, T{edge});
    f.to = got.data();
    kernels.store_tile(f);
    REQUIRE((got == want));
  }
}

template <class T>
void check_copy(const eigen::MicroKernels<T>& kernels) {
  const std::vector<T> from = small_integers<T>(rows * room, 3);
  for (std::int64_t count = 1; count <= 2 * kernels.width() + 1; ++count) {
    const std::vector<eigen::Segment> segments = {{.to = 200, .from = 5, .count = count},
                                                  {.to = 3, .from = 9, .count = 1}};
    std::vector<T> got(rows * room, T{edge}), want = got;
    for (const eigen::Segment& segment : segments)
      std::copy_n(from.begin() + segment.from, segment.count, want.begin() + segment.to);
    kernels.copy_exact(got.data(), from.data(), segments.data(), 2, 64);
    INFO(count << " elements");
    REQUIRE((got == want));
  }
}

/// Packs panels from rows of `run` elements. Some panels have one segment, some have many.
template <class T>
void check_pack(const eigen::MicroKernels<T>& kernels, std::int64_t run) {
  const std::int64_t width = kernels.width(), columns = 3 * width + 1, stride = (rows + 1) * width, pitch = run + 3;
  std::vector<eigen::Segment> segments;
  for (std::int64_t j = 0; j < columns;) {
    const std::int64_t count = std::min({run - j % run, width - j % width, columns - j});
    segments.push_back({j / width * stride + j % width, j / run * pitch + j % run, count});
    j += count;
  }
  const std::vector<std::int64_t> starts = {7, 0, 2 * pitch};
  std::vector<T> from(static_cast<std::size_t>((columns / run + 4) * pitch + width));
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = -static_cast<T>(i);
  std::vector<T> to(static_cast<std::size_t>(5 * stride), T{edge});
  kernels.pack({.to = to.data() + width,
                .ld = width,
                .from = from.data(),
                .starts = starts.data(),
                .rows = rows,
                .segments = segments.data(),
                .count = static_cast<std::int64_t>(segments.size())});
  INFO("runs of " << run);
  for (const eigen::Segment& segment : segments) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < segment.count; ++i) {
        const std::int64_t at = width + segment.to + r * width + i;
        REQUIRE(to[static_cast<std::size_t>(at)] ==
                -static_cast<T>(starts[static_cast<std::size_t>(r)] + segment.from + i));
      }
    }
  }
  const auto untouched = [](T value) { return value == T{edge}; };
  REQUIRE(std::all_of(to.begin(), to.begin() + width, untouched));
  // After the last row of each panel, packing may write up to the panel's width minus one element.
  for (std::int64_t panel = 1; panel <= 4; ++panel)
    REQUIRE(untouched(to[static_cast<std::size_t>(width + panel * stride - 1)]));
  REQUIRE(std::all_of(to.begin() + width + 4 * stride, to.end(), untouched));
}

template <class T>
void check_puts(const eigen::MicroKernels<T>& kernels) {
  check_copy(kernels);
  for (std::int64_t run = 1; run <= 2 * kernels.width() + 1; ++run) check_pack(kernels, run);
  for (const bool add : {false, true}) {
    for (const bool bounded : {false, true}) {
      for (const std::int64_t step : {1, 2, 3}) check_put(kernels, {step, Between::kept, add, bounded});
      check_put(kernels, {2, Between::left, add, bounded});
    }
  }
  for (const std::int64_t step : {1, 2, 3}) check_put(kernels, {step, Between::zeros, false, false});
}

}  // namespace

TEST_CASE("any number of finished sums and copies are stored at their places, and nothing else is written") {
  check_micro_kernels([](const auto& kernels) { check_puts(kernels); });
}
