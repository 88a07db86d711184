// Fully connected: y = x w^T + bias, by a product of cuBLAS or our own.
//
//   cublas   the library's; the default if it can be opened
//   gemm     kernels/gemm/gemm.cu: needs no cuBLAS
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
  T* data;
  std::int64_t row;  ///< elements from row to row
};

/// c = op(a) op(b), or c += op(a) op(b). c has m rows and n columns.
template <class T>
struct Product {
  int m, n, k;
  bool transpose_a, transpose_b;
  Matrix<const T> a, b;
  Matrix<T> c;
  bool adds;
};

/// Our product is faster with few columns than with few rows. With fewer rows it computes c^T = op(b)^T op(a)^T.
template <class T>
GemmProblem<T> problem_of(const Product<T>& p) {
  GemmProblem<T> g;
  const std::int64_t a_m = p.transpose_a ? 1 : p.a.row, a_k = p.transpose_a ? p.a.row : 1;
  const std::int64_t b_k = p.transpose_b ? 1 : p.b.row, b_n = p.transpose_b ? p.b.row : 1;
  g.k = p.k;
  g.c = p.c.data;
  g.adds = p.adds;
  if (p.m >= p.n) {
    g.m = p.m;
    g.n = p.n;
    g.a = p.a.data;
    g.a_m = a_m;
    g.a_k = a_k;
    g.b = p.b.data;
    g.b_k = b_k;
    g.b_n = b_n;
    g.c_m = p.c.row;
    g.c_n = 1;
  } else {
    g.m = p.n;
    g.n = p.m;
    g.a = p.b.data;
    g.a_m = b_n;
    g.a_k = b_k;
    g.b = p.a.data;
    g.b_k = a_k;
    g.b_n = a_m;
    g.c_m = 1;
    g.c_n = p.c.row;
  }
  return g;
}

int features_of(const ConvUnit& c) { return static_cast<int>(c.x.image()); }

/// The operands of one pass, without data: matrices of images x features, outputs x features and images x outputs.
template <class T>
Product<T> shape_of(const ConvUnit& c, Pass pass) {
  const int images = c.x.n, outputs = c.y.c, features = features_of(c);
  switch (pass) {
    case Pass::forward: return {images, outputs, features, false, true, {}, {}, {}, false};
    case Pass::backward_data: return {images, features, outputs, false, false, {}, {}, {}, c.add_dx};
    default: return {outputs, features, images, true, false, {}, {}, {}, c.add_dw};
  }
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

/// Runs one pass; `multiply(product, rest of the workspace)` computes the product.
template <class T, class Multiply>
void run(Stream stream, const ConvUnit& c, Pass pass, const Args& args, Multiply multiply) {
  Product<T> p = shape_of<T>(c, pass);
  void* const rest = static_cast<char*>(args.workspace) + masked_bytes<T>(c, pass);
  const Matrix<const T> w{args.w[0].as<const T>(), features_of(c)};
  if (pass == Pass::forward) {
    p.a = rows_of<T>(args.x[0]);
    p.b = w;
    p.c = {args.y.as<T>(), args.y.pitch};
    multiply(p, rest);
    if (c.op.bias || c.relu) add_bias(stream, c.op.bias ? args.w[1].as<const T>() : nullptr, view<T>(args.y), c.relu);
    apply(stream, c.activation, args.y);
    return;
  }
  if (pass == Pass::backward_data) {
    if (!wanted(args, 0)) return;
    p.a = masked_dy<T>(stream, c, args);
    p.b = w;
    p.c = {args.dx[0].as<T>(), args.dx[0].pitch};
    multiply(p, rest);
    return;
  }
  const Matrix<const T> dy = masked_dy<T>(stream, c, args);
  if (c.op.bias && args.dw.size() > 1 && args.dw[1])
    bias_gradient(stream, Masked<T>{{dy.data, c.x.n, c.y.c, 1, 1, dy.row}, {}}, args.dw[1].as<T>(), c.add_dw, rest);
  if (args.dw.empty() || !args.dw[0]) return;
  p.a = dy;
  p.b = rows_of<T>(args.x[0]);
  p.c = {args.dw[0].as<T>(), features_of(c)};
  multiply(p, rest);
}

/// The error bound of a product that sums in the element type.
double product_error(const ConvUnit& c, Pass pass, Machine&) {
  const double terms = pass == Pass::forward ? features_of(c) + 1.0 : pass == Pass::backward_data ? c.y.c : c.x.n;
  return (terms + 2) * unit_roundoff(c.dtype);
}

Lowered::Step cublas_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() {
    return launches(
        machine, {pass}, cublas_name,
        [c, pass, &machine](Stream stream, const Args& args) {
          run<T>(stream, c, pass, args,
                 [&](const Product<T>& p, void* workspace) { by_cublas(machine, problem_of(p), workspace); });
        },
        masked_bytes<T>(c, pass) + std::max(Machine::blas_workspace_bytes(), bias_bytes(c, pass)));
  });
}

Lowered::Step gemm_step(const ConvUnit& c, Pass pass, const Choice&, Machine& machine) {
  return with_type(c.dtype, [&]<class T>() {
    const GemmProblem<T> g = problem_of(shape_of<T>(c, pass));
    return launches(
        machine, {pass}, "gemm",
        [c, pass](Stream stream, const Args& args) {
          run<T>(stream, c, pass, args, [&](const Product<T>& p, void* workspace) {
            gemm(stream, problem_of(p), static_cast<T*>(workspace));
          });
        },
        masked_bytes<T>(c, pass) + std::max(gemm_partial_bytes<T>(g.m, g.n, g.k), bias_bytes(c, pass)));
  });
}

constexpr Algorithm<Machine> connected_rows[] = {
    {.name = cublas_name,
     .takes = takes_plain,
     .refusal = runs_all,
     .place = [](const ConvUnit&, Pass, Machine& machine) { return machine.has_blas() ? 0 : by_name_only; },
     .max_error = product_error,
     .lower = cublas_step,
     .prepare = nothing},
    {.name = "gemm",
     .takes = takes_plain,
     .refusal = runs_all,
     .place = [](const ConvUnit&, Pass, Machine&) { return 1; },
     .max_error = product_error,
     .lower = gemm_step,
     .prepare = nothing}};

}  // namespace

AlgorithmTable<Machine> algorithm_table(const FullyConnected&) {
  return {connected_rows, [](const std::string&, const ConvUnit&, Pass, Machine&) { return std::string(); }};
}

}  // namespace lamina::LAMINA_CUDA_SPACE
