// The products of the backend "eigen" from inside: every instruction set, element type and algorithm over shapes chosen
// for their edges, against sums in double taken from the definition.

#include <tuple>

#include "lamina/lamina.h"
#include "lamina/random.h"
#include "lib/backends/eigen/gemm/gemm.h"
#include "lib/backends/eigen/runtime/common.h"
#include "tests/eigen/sets.h"
#include "tests/support/catch.h"

using namespace lamina;
using lamina::test::sets_here;

namespace {

struct GemmCase {
  Shape x;
  Conv op;
};

// Edges: planes narrower and wider than a vector and a panel, filters that do not fill a tile, pad beyond the kernel,
// strides that skip pixels or whole residues, dilation, groups, depths of more than one block, batches that share a
// panel.
const std::vector<GemmCase> gemm_cases = {
    {{2, 3, 9, 11}, {.channels = 5, .kernel = 3, .pad = 1}},
    {{3, 4, 7, 7}, {.channels = 17, .kernel = 1}},
    {{1, 8, 20, 30}, {.channels = 64, .kernel = 1}},
    {{2, 6, 13, 10}, {.channels = 9, .kernel = 1, .stride = 2}},
    {{2, 3, 31, 29}, {.channels = 8, .kernel = 7, .stride = 2, .pad = 3}},
    {{1, 3, 35, 35}, {.channels = 10, .kernel = 11, .stride = 4, .pad = 2}},
    {{3, 4, 12, 10}, {.channels = 6, .kernel = {1, 5}, .stride = {2, 1}, .pad = {0, 2}}},
    {{3, 4, 12, 10}, {.channels = 6, .kernel = {3, 2}, .stride = {1, 3}, .pad = {3, 4}}},
    {{2, 4, 15, 17}, {.channels = 8, .kernel = 3, .stride = 3, .pad = 1, .dilation = 2}},
    {{2, 6, 14, 14}, {.channels = 9, .kernel = 3, .pad = {2, 3}, .dilation = {2, 3}, .groups = 3}},
    {{2, 8, 6, 5}, {.channels = 16, .kernel = 3, .stride = 2, .pad = 1, .groups = 8}},
    {{2, 4, 9, 9}, {.channels = 4, .kernel = 2, .stride = 3, .pad = 5, .groups = 2, .bias = false}},
    {{3, 70, 7, 7}, {.channels = 18, .kernel = 3, .pad = 1}},
    {{1, 300, 5, 4}, {.channels = 13, .kernel = 2}},
    {{2, 2, 40, 37}, {.channels = 3, .kernel = {33, 30}}},
    {{2, 7, 31, 29}, {.channels = 9, .kernel = 7, .stride = 2, .pad = 3}},
    {{1, 5, 35, 33}, {.channels = 10, .kernel = {11, 7}, .stride = {4, 3}, .pad = 2}},
    {{3, 5, 12, 10}, {.channels = 6, .kernel = {3, 2}, .stride = {1, 3}, .pad = {3, 4}}},
    {{2, 9, 15, 17}, {.channels = 8, .kernel = 3, .stride = 3, .pad = 1, .dilation = 2}},
    {{2, 12, 14, 14}, {.channels = 10, .kernel = 3, .pad = {2, 3}, .dilation = {2, 3}, .groups = 2}},
    {{2, 40, 9, 50}, {.channels = 12, .kernel = 3, .stride = 2, .pad = 1}},
    {{1, 3, 300, 40}, {.channels = 5, .kernel = {5, 3}, .stride = {3, 1}, .pad = 2, .dilation = {2, 1}}},
    {{1, 1, 70, 130}, {.channels = 2, .kernel = 3, .pad = 1}},
    {{3, 4, 23, 26}, {.channels = 6, .kernel = {5, 7}, .stride = {2, 3}, .pad = {4, 6}, .groups = 2}},
    {{5, 3, 1, 1}, {.channels = 4, .kernel = 3, .pad = 4}},
    {{2, 2, 3, 3}, {.channels = 530, .kernel = 2}},
    // 1x1 on planes of whole vectors, which are read in place: groups, several blocks of depth, of columns
    {{5, 12, 4, 8}, {.channels = 10, .kernel = 1, .groups = 2}},
    {{2, 700, 4, 8}, {.channels = 9, .kernel = 1, .bias = false}},
    {{2, 40, 4, 4}, {.channels = 9, .kernel = 1}},
    {{2, 110, 28, 52}, {.channels = 7, .kernel = 1}},
    // 1x1 with columns left over, of several images and depths; rows that are whole pages apart, which are packed
    {{3, 20, 14, 14}, {.channels = 30, .kernel = 1}},
    {{9, 700, 7, 7}, {.channels = 9, .kernel = 1}},
    {{2, 5, 32, 32}, {.channels = 9, .kernel = 1}},
    // few columns left over: of one image and several, depths of no whole vector
    {{1, 20, 14, 14}, {.channels = 30, .kernel = 1}},
    {{3, 700, 7, 7}, {.channels = 21, .kernel = 1, .bias = false}},
    {{2, 37, 9, 9}, {.channels = 10, .kernel = 1}},
    {{1, 6, 11, 12}, {.channels = 8, .kernel = 1, .groups = 2}},
    // 1x1 with strides: zeros between sums, beside the last of them, and below; weight gradients of several panels
    {{2, 6, 13, 14}, {.channels = 9, .kernel = 1, .stride = {3, 2}}},
    {{2, 6, 14, 13}, {.channels = 9, .kernel = 1, .stride = {2, 3}}},
    {{2, 5, 8, 70}, {.channels = 9, .kernel = 1, .stride = 2}},
    {{2, 300, 5, 5}, {.channels = 301, .kernel = 1, .stride = 2}},
    {{2, 6, 13, 14}, {.channels = 600, .kernel = 1, .stride = 2}},
    {{2, 5, 7, 9}, {.channels = 12, .kernel = 1, .stride = 2, .pad = 1}},
    // 1x1 with strides that read only padding: no residue of x is met
    {{2, 5, 1, 1}, {.channels = 12, .kernel = 1, .stride = 2, .pad = 1}},
    // whole rows of zeros between sums that are vectors side by side
    {{2, 6, 12, 100}, {.channels = 9, .kernel = 1, .stride = {2, 1}}},
    {{2, 6, 12, 100}, {.channels = 9, .kernel = {1, 5}, .stride = {3, 1}, .pad = {0, 2}}},
    // residues side by side, several blocks deep, and panels of fewer vectors that are packed
    {{3, 20, 14, 14}, {.channels = 600, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    {{1, 9, 8, 8}, {.channels = 12, .kernel = 3, .pad = 1}},
    // residues side by side, both of them planes of dy itself
    {{2, 9, 6, 10}, {.channels = 7, .kernel = 2, .stride = 2}},
    // residues of one column each; transposed weights that would lie multiples of 1 KiB apart, in one and two groups
    {{2, 6, 3, 2}, {.channels = 7, .kernel = 3, .stride = {1, 2}, .pad = 1}},
    {{1, 6, 5, 6}, {.channels = 256, .kernel = 1}},
    {{1, 10, 5, 6}, {.channels = 512, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    // filters and channels that are transposed at once, and fewer; a kernel too large for it
    {{1, 21, 9, 8}, {.channels = 37, .kernel = 3, .stride = 2, .pad = 1}},
    {{1, 70, 3, 5}, {.channels = 20, .kernel = 1}},
    {{1, 5, 20, 19}, {.channels = 20, .kernel = {13, 12}, .stride = 2, .pad = 6}},
    // a data gradient whose residues take one image at a time
    {{2, 8, 260, 300}, {.channels = 2, .kernel = 3, .stride = 2, .pad = 1}},
    // a matrix of columns of more than 4 MiB, which im2col_eigen makes in several blocks
    {{2, 8, 100, 160}, {.channels = 2, .kernel = 3, .pad = 1}},
};

// Of one channel in a group or few. Edges: squares with sums of their own and other kernels, one and several filters
// for each channel, padding up to beyond the kernel, strides with residues side by side, scattered or without a tap,
// rows shorter than a vector, planes of several bands, several planes copied at once.
const std::vector<GemmCase> depthwise_cases = {
    {{2, 5, 1, 1}, {.channels = 5, .kernel = 1, .groups = 5}},
    {{2, 5, 9, 11}, {.channels = 5, .kernel = 1, .stride = 2, .pad = 1, .groups = 5}},
    {{2, 5, 7, 8}, {.channels = 5, .kernel = 1, .stride = 3, .groups = 5, .bias = false}},
    {{3, 40, 7, 7}, {.channels = 40, .kernel = 3, .pad = 1, .groups = 40}},
    {{2, 3, 14, 15}, {.channels = 3, .kernel = 3, .pad = 1, .groups = 3, .bias = false}},
    {{2, 3, 40, 37}, {.channels = 6, .kernel = 3, .pad = 2, .groups = 3}},
    {{1, 2, 140, 150}, {.channels = 2, .kernel = 3, .pad = 1, .groups = 2}},
    {{1, 2, 3, 1500}, {.channels = 2, .kernel = 3, .pad = 1, .groups = 2}},
    {{2, 5, 15, 14}, {.channels = 5, .kernel = 3, .stride = 2, .pad = 1, .groups = 5}},
    {{2, 2, 130, 141}, {.channels = 2, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    {{2, 3, 22, 41}, {.channels = 9, .kernel = 3, .stride = 3, .pad = 3, .groups = 3}},
    {{2, 3, 21, 40}, {.channels = 3, .kernel = 3, .stride = {2, 1}, .pad = 1, .groups = 3}},
    {{2, 3, 21, 40}, {.channels = 6, .kernel = {1, 3}, .stride = {1, 2}, .pad = {0, 2}, .groups = 3}},
    {{2, 3, 12, 13}, {.channels = 3, .kernel = 3, .pad = 2, .dilation = 2, .groups = 3}},
    {{2, 3, 19, 17}, {.channels = 6, .kernel = 3, .stride = 2, .pad = {0, 2}, .dilation = {2, 1}, .groups = 3}},
    {{3, 17, 7, 7}, {.channels = 17, .kernel = 5, .pad = 2, .groups = 17}},
    {{2, 3, 40, 37}, {.channels = 3, .kernel = 5, .pad = {4, 1}, .groups = 3}},
    {{2, 4, 29, 28}, {.channels = 8, .kernel = 5, .stride = 2, .pad = 2, .groups = 4, .bias = false}},
    {{2, 2, 40, 37}, {.channels = 2, .kernel = 7, .pad = 3, .groups = 2}},
    {{2, 3, 6, 9}, {.channels = 9, .kernel = 7, .stride = {1, 3}, .pad = 6, .groups = 3}},
    {{2, 3, 16, 23}, {.channels = 3, .kernel = {2, 4}, .stride = {3, 2}, .pad = {3, 5}, .groups = 3}},
    {{2, 3, 16, 23}, {.channels = 6, .kernel = {4, 2}, .stride = {2, 5}, .pad = 1, .groups = 3}},
    {{2, 2, 40, 37}, {.channels = 2, .kernel = {33, 30}, .groups = 2}},
    {{2, 1, 28, 30}, {.channels = 20, .kernel = 5}},
    {{2, 3, 5, 6}, {.channels = 3, .kernel = 2, .stride = 1 << 20, .pad = 1, .groups = 3}},
    {{2, 3, 1, 1}, {.channels = 3, .kernel = 1, .stride = 2, .pad = 1, .groups = 3}},
    // vectors of filters, and halves of one: tiles that fit the rows and columns or begin earlier, several bands, two
    // vectors of a group, groups that two threads share
    {{2, 32, 9, 7}, {.channels = 32, .kernel = 3, .pad = 1, .groups = 2}},
    {{3, 48, 14, 14}, {.channels = 48, .kernel = 3, .pad = 1, .groups = 3, .bias = false}},
    {{1, 16, 40, 61}, {.channels = 16, .kernel = 3, .pad = 1, .groups = 2}},
    {{2, 64, 21, 30}, {.channels = 64, .kernel = 3, .stride = 2, .pad = 1, .groups = 2}},
    {{2, 24, 3, 20}, {.channels = 24, .kernel = 5, .pad = 2, .groups = 3}},
    {{1, 8, 12, 17}, {.channels = 32, .kernel = {3, 2}, .stride = {1, 2}, .pad = 2, .dilation = 2, .groups = 2}},
    {{2, 12, 9, 10}, {.channels = 24, .kernel = {2, 3}, .pad = {0, 3}, .groups = 3}},
};

/// Numbers in a tensor with a pitch. A pattern between and after its images must stay.
template <class T>
struct Field {
  static constexpr double wall = 12345.0;
  Shape shape;
  std::int64_t pitch;
  std::vector<T> data;

  Field(Shape s, std::int64_t gap)
      : shape(s), pitch(s.image() + gap), data(static_cast<std::size_t>(pitch * s.n + 16), T(wall)) {}
  T& at(std::int64_t n, std::int64_t i) { return data[static_cast<std::size_t>(n * pitch + i)]; }
  T at(std::int64_t n, std::int64_t i) const { return data[static_cast<std::size_t>(n * pitch + i)]; }
  void fill(std::uint64_t key, bool integers) {
    for (std::int64_t n = 0; n < shape.n; ++n) {
      for (std::int64_t i = 0; i < shape.image(); ++i) {
        const double u = philox(key, static_cast<std::uint64_t>(n * shape.image() + i), 0)[0] * 0x1p-32;
        at(n, i) = static_cast<T>(integers ? std::floor(u * 7) - 3 : 2 * u - 1);
      }
    }
  }
  void fill_nan() {
    for (std::int64_t n = 0; n < shape.n; ++n)
      for (std::int64_t i = 0; i < shape.image(); ++i) at(n, i) = std::numeric_limits<T>::quiet_NaN();
  }
  bool walls_stand() {
    for (std::int64_t n = 0; n < shape.n; ++n)
      for (std::int64_t i = shape.image(); i < pitch; ++i)
        if (at(n, i) != T(wall)) return false;
    for (std::size_t i = static_cast<std::size_t>(pitch * shape.n); i < data.size(); ++i)
      if (data[i] != T(wall)) return false;
    return true;
  }
  Tensor tensor() { return {data.data(), shape, sizeof(T) == 4 ? DType::f32 : DType::f64, Layout::nchw, pitch}; }
  TensorSpec spec() const { return {shape, sizeof(T) == 4 ? DType::f32 : DType::f64, Layout::nchw, pitch, pitch}; }
};

/// A sum, and the sum of |terms|.
struct Sum {
  double value = 0, size = 0;
  void add(double term) {
    value += term;
    size += std::abs(term);
  }
};

/// Calls term(y index, w index, x index), each within its image, for every product of one image's convolution.
template <class Term>
void products(const Conv& op, const Shape& x, const Shape& y, Term&& term) {
  const std::int64_t channels = x.c / op.groups, filters = y.c / op.groups;
  for (std::int64_t k = 0; k < y.c; ++k)
    for (std::int64_t c = 0; c < channels; ++c)
      for (int r = 0; r < op.kernel.h; ++r)
        for (int s = 0; s < op.kernel.w; ++s)
          for (int p = 0; p < y.h; ++p)
            for (int q = 0; q < y.w; ++q) {
              const int h = p * op.stride.h - op.pad.h + r * op.dilation.h,
                        w = q * op.stride.w - op.pad.w + s * op.dilation.w;
              if (h < 0 || h >= x.h || w < 0 || w >= x.w) continue;
              term((k * y.h + p) * y.w + q, ((k * channels + c) * op.kernel.h + r) * op.kernel.w + s,
                   ((k / filters * channels + c) * x.h + h) * x.w + w);
            }
}

/// Compares with sums, which were added to `before` if it is given.
template <class T>
void compare(const char* what, Field<T>& got, const std::vector<Sum>& wanted, double terms, bool exact,
             const Field<T>* before = nullptr) {
  INFO(what);
  const double roundoff = std::numeric_limits<T>::epsilon();
  std::size_t wrong = 0;
  for (std::int64_t n = 0; n < got.shape.n; ++n) {
    for (std::int64_t i = 0; i < got.shape.image(); ++i) {
      Sum sum = wanted[static_cast<std::size_t>(n * got.shape.image() + i)];
      if (before) sum.add(static_cast<double>(before->at(n, i)));
      const double error = std::abs(static_cast<double>(got.at(n, i)) - sum.value);
      if (!(error <= (exact ? 0.0 : (terms + 8) * roundoff * sum.size))) ++wrong;
    }
  }
  CHECK(wrong == 0);
  CHECK(got.walls_stand());
}

/// The sums of the definition, in double.
struct Sums {
  std::vector<Sum> y, dw, db, dx;
};

/// Sums of the definition, kept as long as the data and the ReLU's mask stay the same.
struct Known {
  std::vector<bool> passes;  ///< the ReLU's mask of y's elements; empty without a ReLU
  Sums sums;
};

/// The results of one case by element type, whether a ReLU follows, whether all numbers are integers.
using Reference = std::map<std::tuple<DType, bool, bool>, Known>;

template <class T>
Sums definition(const Conv& conv, Field<T>& x, std::vector<Field<T>>& w, Field<T>& dy,
                const std::vector<bool>& passes) {
  Sums sums;
  sums.y.resize(static_cast<std::size_t>(dy.shape.count()));
  sums.dx.resize(static_cast<std::size_t>(x.shape.count()));
  sums.dw.resize(static_cast<std::size_t>(w[0].shape.count()));
  sums.db.resize(static_cast<std::size_t>(dy.shape.c));
  for (std::int64_t n = 0; n < x.shape.n; ++n) {
    const auto yn = static_cast<std::size_t>(n * dy.shape.image()), xn = static_cast<std::size_t>(n * x.shape.image());
    for (std::int64_t i = 0; conv.bias && i < dy.shape.image(); ++i)
      sums.y[yn + static_cast<std::size_t>(i)].add(static_cast<double>(w[1].at(0, i / dy.shape.plane())));
    const auto upstream = [&](std::int64_t i) {
      return !passes.empty() && !passes[yn + static_cast<std::size_t>(i)] ? 0.0 : static_cast<double>(dy.at(n, i));
    };
    products(conv, x.shape, dy.shape, [&](std::int64_t i, std::int64_t j, std::int64_t l) {
      const double weight = static_cast<double>(w[0].data[static_cast<std::size_t>(j)]);
      sums.y[yn + static_cast<std::size_t>(i)].add(weight * static_cast<double>(x.at(n, l)));
      sums.dw[static_cast<std::size_t>(j)].add(upstream(i) * static_cast<double>(x.at(n, l)));
      sums.dx[xn + static_cast<std::size_t>(l)].add(upstream(i) * weight);
    });
    for (std::int64_t i = 0; i < dy.shape.image(); ++i)
      sums.db[static_cast<std::size_t>(i / dy.shape.plane())].add(upstream(i));
  }
  if (!passes.empty())
    for (Sum& sum : sums.y) sum.value = std::max(sum.value, 0.0);
  return sums;
}

/// Runs all passes of an op that is the convolution `conv`, and compares them with the definition.
template <class T>
void check_gemm(const Op& op, const Conv& conv, Shape x_shape, const std::string& algorithm,
                const eigen::InstructionSet& set, int threads, bool relu, bool add, bool integers,
                Reference& reference) {
  const Inferred inferred = infer(op, {x_shape});
  const Shape y_shape = inferred.y;
  Field<T> x(x_shape, 5), y(y_shape, 3), dx(x_shape, 7), dy(y_shape, 2);
  std::vector<Field<T>> w, dw;
  for (const Shape& shape : inferred.params) {
    w.emplace_back(shape, 0);
    dw.emplace_back(shape, 0);
  }
  x.fill(1, integers);
  dy.fill(2, integers);
  y.fill_nan();
  for (std::size_t i = 0; i < w.size(); ++i) w[i].fill(3 + i, integers);
  const auto start = [&](Field<T>& field, std::uint64_t key) {
    if (!add) return field.fill_nan();
    field.fill(key, integers);
  };
  start(dx, 11);
  start(dw[0], 12);
  if (conv.bias) start(dw[1], 13);
  const Field<T> dx_before = dx;
  const std::vector<Field<T>> dw_before = dw;

  Spec spec{
      .op = op, .tail = {}, .x = {x.spec()}, .y = y.spec(), .w = {}, .state = {}, .wants_dx = {true}, .adds_dx = {add}};
  if (relu) spec.tail = {Relu{}};
  spec.adds_dw = add;
  for (const Field<T>& parameter : w) spec.w.push_back(parameter.spec());
  const auto with = make_backend("eigen", {.threads = threads, .instruction_set = set.name});
  Choice choice;
  choice.algorithm = {algorithm, algorithm, algorithm};
  const Lowered lowered = with->lower(spec, choice);
  REQUIRE(lowered.steps.size() == 3);
  Args args;
  args.x = {x.tensor()};
  args.y = y.tensor();
  args.dy = dy.tensor();
  args.dx = {dx.tensor()};
  for (std::size_t i = 0; i < w.size(); ++i) {
    args.w.push_back(w[i].tensor());
    args.dw.push_back(dw[i].tensor());
  }
  for (const Lowered::Step& step : lowered.steps) {
    CHECK(step.algorithm == algorithm);
    const std::size_t bytes = step.kernel->workspace_bytes();
    std::vector<std::byte> memory(bytes + 512, std::byte{0xff});  // NaN wherever it is read before it is written
    void* at = memory.data();
    std::size_t room = memory.size();
    args.workspace = std::align(256, bytes, at, room);
    step.kernel->run(args);
    for (std::byte* end = static_cast<std::byte*>(args.workspace) + bytes; end != memory.data() + memory.size();
         ++end) {
      if (*end != std::byte{0xff}) FAIL("wrote beyond the workspace");
    }
  }

  std::vector<bool> passes;
  for (std::int64_t n = 0; relu && n < y_shape.n; ++n)
    for (std::int64_t i = 0; i < y_shape.image(); ++i) passes.push_back(y.at(n, i) > 0);
  const auto [known, is_new] = reference.try_emplace({sizeof(T) == 4 ? DType::f32 : DType::f64, relu, integers});
  if (is_new || known->second.passes != passes) known->second = {passes, definition(conv, x, w, dy, passes)};
  const Sums& sums = known->second.sums;
  const double kernel = static_cast<double>(conv.kernel.h) * conv.kernel.w;
  const double positions = static_cast<double>(y_shape.n) * static_cast<double>(y_shape.plane());
  compare("y", y, sums.y, kernel * x_shape.c / conv.groups + 1, integers);
  compare("dw", dw[0], sums.dw, positions + 1, integers, add ? &dw_before[0] : nullptr);
  if (conv.bias) compare("db", dw[1], sums.db, positions + 1, integers, add ? &dw_before[1] : nullptr);
  compare("dx", dx, sums.dx, kernel * y_shape.c / conv.groups + 1, integers, add ? &dx_before : nullptr);
  CHECK(x.walls_stand());
  CHECK(dy.walls_stand());
}

void check_all(const Op& op, const Conv& conv, const Shape& x, const std::string& algorithm,
               const eigen::InstructionSet& set, Reference& reference) {
  INFO(to_string(op) << " of " << to_string(x) << " by " << algorithm << ", " << set.name);
  for (const int threads : {1, 3}) {
    for (const bool relu : {false, true}) {
      const bool add = (threads == 3) != relu;
      INFO(threads << " threads, relu " << relu << ", add " << add);
      check_gemm<float>(op, conv, x, algorithm, set, threads, relu, add, false, reference);
      check_gemm<double>(op, conv, x, algorithm, set, threads, relu, add, false, reference);
      check_gemm<float>(op, conv, x, algorithm, set, threads, relu, add, true, reference);
    }
  }
}

}  // namespace

TEST_CASE("a convolution is its definition on every instruction set, by every algorithm") {
  for (const GemmCase& c : gemm_cases) {
    Reference reference;
    for (const eigen::InstructionSet* set : sets_here()) check_all(c.op, c.op, c.x, "im2col_gemm", *set, reference);
    check_all(c.op, c.op, c.x, "im2col_eigen", *sets_here().front(), reference);
    check_all(c.op, c.op, c.x, "direct", *eigen::instruction_sets().back(), reference);
  }
  for (const GemmCase& c : depthwise_cases) {
    Reference reference;
    for (const eigen::InstructionSet* set : sets_here()) check_all(c.op, c.op, c.x, "depthwise", *set, reference);
  }
}

TEST_CASE("no panel is a single vector if there are more") {
  for (const std::int64_t most : {1, 2, 3}) {
    for (std::int64_t vectors = 1; vectors <= 40; ++vectors) {
      std::int64_t panels = 0, left = vectors;
      for (; left > 0; ++panels) {
        const std::int64_t taken = eigen::panel_vectors(left, most);
        if (most > 2) REQUIRE(taken >= std::min<std::int64_t>(vectors, 2));
        REQUIRE(taken <= most);
        left -= taken;
      }
      CHECK(left == 0);
      CHECK(panels == (vectors + most - 1) / most);
    }
  }
}

TEST_CASE("a fully connected layer is the convolution over its whole plane") {
  const std::vector<std::pair<Shape, FullyConnected>> layers = {
      {{3, 5, 4, 3}, {.outputs = 7}},    {{1, 300, 1, 1}, {.outputs = 33, .bias = false}},
      {{50, 17, 2, 2}, {.outputs = 40}}, {{2, 2500, 1, 1}, {.outputs = 300}},
      {{300, 40, 1, 1}, {.outputs = 5}}, {{65, 530, 1, 1}, {.outputs = 13}},
      {{130, 70, 1, 1}, {.outputs = 50}}};
  for (const auto& [x, op] : layers) {
    const Conv conv{.channels = op.outputs, .kernel = {x.h, x.w}, .bias = op.bias};
    Reference reference;
    for (const eigen::InstructionSet* set : sets_here()) check_all(op, conv, x, "gemm", *set, reference);
    check_all(op, conv, x, "direct", *eigen::instruction_sets().back(), reference);
  }
}
