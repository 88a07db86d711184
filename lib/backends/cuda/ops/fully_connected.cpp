// Fully connected: y = x w^T + bias, by a product of cuBLAS or our own.
//
//   cublas   the product of the library; the default if the library can be opened
//   gemm     our product, kernels/gemm/gemm.cu: needs no cuBLAS
//
// Rows of x and y are images, rows of w are outputs. With a ReLU in the unit, backward first writes the masked dy to
// the workspace.

#include <algorithm>

#include "by_cublas.h"
#include "kernels/bias.h"
#include "kernels/pointwise.h"
#include "lib/backends/common/algorithms.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

/// A row-major matrix, as the three products need it.
template <class T>
struct Matrix {
  T* data = nullptr;
  std::int64_t row = 0;  ///< elements from row to row
};

int features_of(const ConvUnit& c) { return static_cast<int>(c.x.image()); }

/// The product of one pass: y = x w^T, dx = dy w or dw = dy^T x. x is images x features, w is outputs x features.
/// Transposed if there are fewer rows than columns: our product is faster with few columns.
template <class T>
GemmProblem<T> product_of(const ConvUnit& c, Pass pass, const Matrix<const T>& a, const Matrix<const T>& b,
                          const Matrix<T>& to) {
  const int images = c.x.n, outputs = c.y.c, features = features_of(c);
  GemmProblem<T> p;
  switch (pass) {
    case Pass::forward:
      p = {images, outputs, features, a.data, a.row, 1, b.data, 1, b.row, to.data, to.row, 1, false};
      break;
    case Pass::backward_data:
      p = {images, features, outputs, a.data, a.row, 1, b.data, b.row, 1, to.data, to.row, 1, c.add_dx};
      break;
    default: p = {outputs, features, images, a.data, 1, a.row, b.data, b.row, 1, to.data, to.row, 1, c.add_dw};
  }
  return p.m >= p.n ? p : transposed(p);
}

template <class T>
Matrix<const T> rows_of(const Tensor& tensor) {
  return {tensor.as<const T>(), tensor.pitch};
}

/// Bytes for the masked dy.
template <class T>
std::size_t masked_bytes(const ConvUnit& c, Pass pass) {
  if (pass == Pass::forward || !c.relu) return 0;
  return aligned(static_cast<std::size_t>(c.x.n) * static_cast<std::size_t>(c.y.c) * sizeof(T));
}

template <class T>
Matrix<const T> masked_dy(Stream stream, const ConvUnit& c, const Args& args) {
  if (!c.relu) return rows_of<T>(args.dy);
  T* const masked = static_cast<T*>(args.workspace);
  pointwise_backward(stream, {PointwiseFunction::relu}, view<const T>(args.y), view<const T>(args.dy),
                     View<T>{masked, c.x.n, c.y.c, 1, 1, c.y.c}, false);
  return {masked, c.y.c};
}

/// Bytes of workspace for the bias gradient, which is computed before the product.
std::size_t bias_bytes(const ConvUnit& c, Pass pass) {
  return pass == Pass::backward_params && c.op.bias ? bias_gradient_bytes(c.y.c, c.x.n) : 0;
}

/// Runs one pass.
template <class T>
void run(Machine* blas, Stream stream, const ConvUnit& c, Pass pass, const Args& args) {
  void* const rest = static_cast<char*>(args.workspace) + masked_bytes<T>(c, pass);
  const Matrix<const T> w{args.w[0].as<const T>(), features_of(c)};
  if (pass == Pass::forward) {
    multiply(blas, stream, product_of<T>(c, pass, rows_of<T>(args.x[0]), w, {args.y.as<T>(), args.y.pitch}), rest);
    if (c.op.bias || c.relu) add_bias(stream, c.op.bias ? args.w[1].as<const T>() : nullptr, view<T>(args.y), c.relu);
    apply(stream, c.activation, args.y);
    return;
  }
  if (pass == Pass::backward_data) {
    if (wanted(args, 0))
      multiply(blas, stream,
               product_of<T>(c, pass, masked_dy<T>(stream, c, args), w, {args.dx[0].as<T>(), args.dx[0].pitch}), rest);
    return;
  }
  const Matrix<const T> dy = masked_dy<T>(stream, c, args);
  if (c.op.bias && args.dw.size() > 1 && args.dw[1])
    bias_gradient(stream, Masked<T>{{dy.data, c.x.n, c.y.c, 1, 1, dy.row}, {}}, args.dw[1].as<T>(), c.add_dw, rest);
  if (args.dw.empty() || !args.dw[0]) return;
  multiply(blas, stream, product_of<T>(c, pass, dy, rows_of<T>(args.x[0]), {args.dw[0].as<T>(), features_of(c)}), rest);
}

/// The error bound of a product that sums in the element type.
double product_error(const ConvUnit& c, Pass pass, Machine&) {
  const double terms = pass == Pass::forward ? features_of(c) + 1.0 : pass == Pass::backward_data ? c.y.c : c.x.n;
  return (terms + 2) * unit_roundoff(c.dtype);
}

template <bool by_library>
Lowered::Step product_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  Machine* const blas = by_library ? &machine : nullptr;
  return with_type(machine.backend, c.dtype, [&]<class T>() {
    return launches(
        machine, {pass}, by_library ? cublas_name : "gemm",
        [c, pass, blas](Stream stream, const Args& args) { run<T>(blas, stream, c, pass, args); },
        masked_bytes<T>(c, pass) +
            std::max(product_bytes(blas, product_of<T>(c, pass, {}, {}, {})), bias_bytes(c, pass)));
  });
}

constexpr Algorithm<Machine> connected_rows[] = {
    {.name = cublas_name,
     .place = [](const ConvUnit&, Pass, Machine& machine) { return machine.has_blas() ? 0 : by_name_only; },
     .max_error = product_error,
     .lower = product_step<true>},
    {.name = "gemm",
     .place = [](const ConvUnit&, Pass, Machine&) { return 1; },
     .max_error = product_error,
     .lower = product_step<false>}};

}  // namespace

constinit const AlgorithmTable<Machine> connected_table = {connected_rows};

}  // namespace lamina::LAMINA_CUDA_SPACE
