// Fully connected: y = x w^T + bias, by a product of cuBLAS or our own.
//
//   cublas   the library's; the default if it can be opened
//   gemm     kernels/gemm/gemm.cu: needs no cuBLAS
//
// Images are rows of x and y, outputs rows of w. With a ReLU in the unit, backward first writes dy where y is above 0
// to the workspace.

#include <algorithm>

#include "by_cublas.h"
#include "kernels/bias.h"
#include "kernels/pointwise.h"
#include "lib/core/numbers/rounding.h"

namespace lamina::LAMINA_CUDA_SPACE {
namespace {

constexpr const char* cublas_name = "cublas";

/// The op's sizes: matrices of images x features, outputs x features and images x outputs.
struct Layer {
  int images, features, outputs;
  bool bias, relu, add_dx, add_dw;
};

/// A row-major matrix, as the three products need it.
template <class T>
struct Matrix {
  T* data;
  std::int64_t row;  ///< elements between rows
};

/// c = op(a) op(b), or c +=. Rows of c: m; columns: n.
template <class T>
struct Product {
  int m, n, k;
  bool transpose_a, transpose_b;
  Matrix<const T> a, b;
  Matrix<T> c;
  bool adds;
};

/// Our product is faster with few columns than with few rows: with fewer rows, c^T = op(b)^T op(a)^T.
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

/// The operands of one pass, without data.
template <class T>
Product<T> shape_of(const Layer& l, Pass pass) {
  switch (pass) {
    case Pass::forward: return {l.images, l.outputs, l.features, false, true, {}, {}, {}, false};
    case Pass::backward_data: return {l.images, l.features, l.outputs, false, false, {}, {}, {}, l.add_dx};
    default: return {l.outputs, l.features, l.images, true, false, {}, {}, {}, l.add_dw};
  }
}

template <class T>
Matrix<const T> rows_of(const Tensor& tensor) {
  return {tensor.as<const T>(), tensor.pitch};
}

/// Bytes for the masked dy.
template <class T>
std::size_t masked_bytes(const Layer& l, Pass pass) {
  if (pass == Pass::forward || !l.relu) return 0;
  return aligned(static_cast<std::size_t>(l.images) * static_cast<std::size_t>(l.outputs) * sizeof(T));
}

template <class T>
Matrix<const T> masked_dy(Stream stream, const Layer& l, const Args& args) {
  if (!l.relu) return rows_of<T>(args.dy);
  T* const masked = static_cast<T*>(args.workspace);
  pointwise_backward(stream, pointwise::Relu{}, view<const T>(args.y), view<const T>(args.dy),
                     View<T>{masked, l.images, l.outputs, 1, 1, l.outputs}, false);
  return {masked, l.outputs};
}

/// The part of the workspace that the bias gradient takes, before the product.
std::size_t bias_bytes(const Layer& l, Pass pass) {
  return pass == Pass::backward_params && l.bias ? bias_gradient_bytes(l.outputs, l.images) : 0;
}

/// One pass; `multiply(product, rest of the workspace)` does the product.
template <class T, class Multiply>
void run(Stream stream, const Layer& l, Pass pass, const Args& args, Multiply multiply) {
  Product<T> p = shape_of<T>(l, pass);
  void* const rest = static_cast<char*>(args.workspace) + masked_bytes<T>(l, pass);
  const Matrix<const T> w{args.w[0].as<const T>(), l.features};
  if (pass == Pass::forward) {
    p.a = rows_of<T>(args.x[0]);
    p.b = w;
    p.c = {args.y.as<T>(), args.y.pitch};
    multiply(p, rest);
    if (l.bias || l.relu) add_bias(stream, l.bias ? args.w[1].as<const T>() : nullptr, view<T>(args.y), l.relu);
    return;
  }
  if (pass == Pass::backward_data) {
    if (!wanted(args, 0)) return;
    p.a = masked_dy<T>(stream, l, args);
    p.b = w;
    p.c = {args.dx[0].as<T>(), args.dx[0].pitch};
    multiply(p, rest);
    return;
  }
  const Matrix<const T> dy = masked_dy<T>(stream, l, args);
  if (l.bias && args.dw.size() > 1 && args.dw[1])
    bias_gradient(stream, Masked<T>{{dy.data, l.images, l.outputs, 1, 1, dy.row}, {}}, args.dw[1].as<T>(), l.add_dw,
                  rest);
  if (args.dw.empty() || !args.dw[0]) return;
  p.a = dy;
  p.b = rows_of<T>(args.x[0]);
  p.c = {args.dw[0].as<T>(), l.features};
  multiply(p, rest);
}

template <class T>
Lowered::Step cublas_step(const Layer& l, Pass pass, Machine& machine) {
  return launches(
      machine, {pass}, cublas_name,
      [l, pass, &machine](Stream stream, const Args& args) {
        run<T>(stream, l, pass, args,
               [&](const Product<T>& p, void* workspace) { by_cublas(machine, problem_of(p), workspace); });
      },
      masked_bytes<T>(l, pass) + std::max(Machine::blas_workspace_bytes(), bias_bytes(l, pass)));
}

template <class T>
Lowered::Step gemm_step(const Layer& l, Pass pass, Machine& machine) {
  const GemmProblem<T> g = problem_of(shape_of<T>(l, pass));
  return launches(
      machine, {pass}, "gemm",
      [l, pass](Stream stream, const Args& args) {
        run<T>(stream, l, pass, args,
               [&](const Product<T>& p, void* workspace) { gemm(stream, problem_of(p), static_cast<T*>(workspace)); });
      },
      masked_bytes<T>(l, pass) + std::max(gemm_partial_bytes<T>(g.m, g.n, g.k), bias_bytes(l, pass)));
}

}  // namespace

std::vector<std::string> fully_connected_algorithms(Pass pass) {
  if (pass != Pass::forward && pass != Pass::backward_params && pass != Pass::backward_data) return {};
  return {cublas_name, "gemm"};
}

Lowered lower(const FullyConnected& op, const Spec& spec, const Choice& choice, Machine& machine) {
  const std::string unit = std::string(Machine::backend_name()) + ": " + to_string(Op(op));
  const Layer l{spec.x[0].shape.n,  static_cast<int>(spec.x[0].shape.image()),
                op.outputs,         op.bias,
                ends_in_relu(spec), adds_dx(spec, 0),
                spec.adds_dw};
  Lowered lowered = assemble(spec, [&](Pass pass) {
    const double terms = pass == Pass::forward ? l.features + 1.0 : pass == Pass::backward_data ? l.outputs : l.images;
    const double error = (terms + 2) * unit_roundoff(spec.y.dtype);
    std::vector<Alternative> alternatives;
    const auto offer = [&](const char* name, auto step_of) {
      alternatives.push_back({name, error, [=, &machine, &spec] {
                                return with_type(spec.y.dtype, [&]<class T>() {
                                  return step_of.template operator()<T>(l, pass, machine);
                                });
                              }});
    };
    if (machine.has_blas() || choice.algorithm[static_cast<std::size_t>(pass)] == cublas_name)
      offer(cublas_name, []<class T>(const Layer& layer, Pass p, Machine& m) { return cublas_step<T>(layer, p, m); });
    offer("gemm", []<class T>(const Layer& layer, Pass p, Machine& m) { return gemm_step<T>(layer, p, m); });
    return pick(unit, pass, choice, alternatives);
  });
  if (uses(lowered, cublas_name)) machine.make_blas(spec.y.dtype);
  return lowered;
}

}  // namespace lamina::LAMINA_CUDA_SPACE
