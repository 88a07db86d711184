// y = x w^T + bias and its gradients: products by cuBLAS, the bias of f32 and f64 by cuDNN.

#include <optional>

#include "lib/backends/common/algorithms.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/core/device/blas/blas.h"
#include "lib/core/device/math_environment.h"
#include "tail.h"

namespace lamina::cudnn {
namespace {

/// A row-major matrix.
struct Matrix {
  const void* data;
  int leading;
  bool transposed = false;
};

struct Problem : Calls {
  int images, outputs, features;
  bool tf32, adds, adds_dw;
  std::size_t blas_bytes;
  std::optional<Bias> bias;

  Problem(const FullyConnected& op, const Spec& spec, const Choice& choice, Session& in)
      : Calls(in, spec.y.dtype),
        images(spec.y.shape.n),
        outputs(op.outputs),
        features(static_cast<int>(spec.x[0].shape.image())),
        tf32(choice.math == Math::tf32),
        adds(adds_dx(spec, 0)),
        adds_dw(spec.adds_dw),
        blas_bytes(std::min(choice.workspace_limit & ~std::size_t{255}, Blas::workspace_bytes)) {
    if (op.bias) bias.emplace(spec, in);
  }

  /// c = a b, or c += a b. a is m x k, b is k x n. All are dense; the factors have the type of the values.
  void multiply(const Args& args, int m, int n, int k, const Matrix& a, const Matrix& b, const Tensor& c,
                bool adds_c) const {
    Blas& blas = session.blas();
    blas.use_workspace(args.workspace, blas_bytes);
    const auto run = [&](auto product) {
      product.transpose_a = a.transposed, product.transpose_b = b.transposed;
      product.m = m, product.n = n, product.k = k;
      product.a = static_cast<decltype(product.a)>(a.data), product.lda = a.leading;
      product.b = static_cast<decltype(product.b)>(b.data), product.ldb = b.leading;
      product.c = static_cast<decltype(product.c)>(c.data), product.ldc = n;
      if (adds_c) product.beta = 1;
      blas.gemm(product);
    };
    if (is_half(dtype)) return run(HalfGemm{{}, dtype, c.dtype});
    blas.allow_tf32(tf32);
    if (dtype == DType::f64) return run(Gemm<double>{});
    run(Gemm<float>{});
  }

  /// The weights as a factor of a product. In half precision they are the prepared copy.
  const void* weights(const Args& args) const { return is_half(dtype) ? args.prepared : args.w[0].data; }

  void run(Pass pass, const Args& args) const {
    if (pass == Pass::forward) {
      multiply(args, images, outputs, features, {args.x[0].data, features}, {weights(args), features, true}, args.y,
               false);
      if (bias) bias->add(args.w[1].data, args.y);
    } else if (pass == Pass::backward_params) {
      if (args.dw.at(0))
        multiply(args, outputs, features, images, {args.dy.data, outputs, true}, {args.x[0].data, features}, args.dw[0],
                 adds_dw);
      if (bias) bias->gradient(args, args.dy);
    } else if (wanted(args, 0)) {
      multiply(args, images, features, outputs, {args.dy.data, outputs}, {weights(args), features}, args.dx[0], adds);
    }
  }

  std::size_t workspace_bytes(Pass pass) const {
    return std::max(blas_bytes, bias && pass == Pass::backward_params ? bias->gradient_bytes() : 0);
  }
};

void check_choice(const FullyConnected& op, const Spec& spec, const Choice& choice) {
  check_math("cudnn: " + to_string(Op(op)), spec.y.dtype, choice.math);
  if (choice.workspace_limit < Blas::least_workspace_bytes)
    refuse(op, "cuBLAS may fail with less than " + std::to_string(Blas::least_workspace_bytes) +
                   " bytes of workspace, the limit is " + std::to_string(choice.workspace_limit));
  check_math_environment("cudnn: " + to_string(Op(op)), spec.y.dtype, choice.math, Products::of_cublas);
}

}  // namespace

Lowered lower(const FullyConnected& op, const Spec& spec, const Choice& choice, Session& session) {
  check_choice(op, spec, choice);
  const auto problem = std::make_shared<const Problem>(op, spec, choice, session);
  if (session.has_device()) session.blas();  // so that no pass opens it
  Lowered unit = product_flags(spec);
  for (const Pass pass : product_passes(spec)) {
    const auto make_step = [&] {
      Lowered::Step made = step(
          {pass}, "gemm", [problem, pass](const Args& args) { problem->run(pass, args); },
          problem->workspace_bytes(pass));
      made.math = choice.math;
      return made;
    };
    unit.steps.push_back(pick("cudnn: " + to_string(Op(op)), pass, choice, {{"gemm", no_bound, make_step}}));
  }
  if (!is_half(spec.y.dtype)) return unit;
  unit.prepared_bytes = static_cast<std::size_t>(spec.w[0].shape.count()) * size_of(spec.y.dtype);
  unit.steps.push_back(step({Pass::prepare}, "gemm", [&session, dtype = spec.y.dtype](const Args& args) {
    Tensor halves = args.w[0];
    halves.data = args.prepared;
    halves.dtype = dtype;
    session.machine().convert(halves, args.w[0], false);
  }));
  return unit;
}

}  // namespace lamina::cudnn
