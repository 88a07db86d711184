// y = x w^T + bias and its gradients: matrix products by cuBLAS, the bias by cuDNN.

#include <optional>

#include "lib/backends/cudnn/library/common.h"
#include "lib/device/blas/blas.h"
#include "lib/device/math_environment.h"

namespace lamina::cudnn {
namespace {

struct Problem {
  Session& session;
  const Api& api;
  DType dtype;
  int images, outputs, features;
  bool tf32, adds, adds_dw;
  std::size_t workspace_bytes;
  TensorDescriptor y, dy;
  std::optional<TensorDescriptor> bias;

  Problem(const FullyConnected& op, const Spec& spec, const Choice& choice, Session& in)
      : session(in),
        api(in.api()),
        dtype(spec.y.dtype),
        images(spec.y.shape.n),
        outputs(op.outputs),
        features(static_cast<int>(spec.x[0].shape.image())),
        tf32(choice.math == Math::tf32),
        adds(adds_dx(spec, 0)),
        adds_dw(spec.adds_dw),
        workspace_bytes(std::min(choice.workspace_limit & ~std::size_t{255}, Blas::workspace_bytes)),
        y(describe_value(api, spec.y)),
        dy(describe_gradient(api, spec.y)) {
    if (op.bias) bias.emplace(describe_dense(api, spec.w[1]));
  }

  template <class T>
  void multiply(const Args& args, Gemm<T> product) const {
    Blas& blas = session.blas();
    blas.use_workspace(args.workspace, workspace_bytes);
    blas.allow_tf32(tf32);
    blas.gemm(product);
  }

  template <class T>
  void forward(const Args& args) const {
    multiply<T>(args, {.transpose_b = true,
                       .m = images,
                       .n = outputs,
                       .k = features,
                       .a = args.x[0].as<const T>(),
                       .lda = features,
                       .b = args.w[0].as<const T>(),
                       .ldb = features,
                       .c = args.y.as<T>(),
                       .ldc = outputs});
    if (bias)
      LAMINA_CUDNN(api, AddTensor, session.handle(), one(dtype), bias->get(), args.w[1].data, one(dtype), y.get(),
                   args.y.data);
  }

  template <class T>
  void backward_params(const Args& args) const {
    if (args.dw.at(0))
      multiply<T>(args, {.transpose_a = true,
                         .m = outputs,
                         .n = features,
                         .k = images,
                         .a = args.dy.as<const T>(),
                         .lda = outputs,
                         .b = args.x[0].as<const T>(),
                         .ldb = features,
                         .beta = static_cast<T>(adds_dw),
                         .c = args.dw[0].as<T>(),
                         .ldc = features});
    if (bias && args.dw.at(1))
      LAMINA_CUDNN(api, ConvolutionBackwardBias, session.handle(), one(dtype), dy.get(), args.dy.data,
                   beta(dtype, adds_dw), bias->get(), args.dw[1].data);
  }

  template <class T>
  void backward_data(const Args& args) const {
    if (wanted(args, 0))
      multiply<T>(args, {.m = images,
                         .n = features,
                         .k = outputs,
                         .a = args.dy.as<const T>(),
                         .lda = outputs,
                         .b = args.w[0].as<const T>(),
                         .ldb = features,
                         .beta = static_cast<T>(adds),
                         .c = args.dx[0].as<T>(),
                         .ldc = features});
  }

  template <class T>
  void run(Pass pass, const Args& args) const {
    switch (pass) {
      case Pass::forward: return forward<T>(args);
      case Pass::backward_params: return backward_params<T>(args);
      default: return backward_data<T>(args);
    }
  }
};

void check_choice(const FullyConnected& op, const Spec& spec, const Choice& choice) {
  for (const std::string& name : choice.algorithm)
    if (!name.empty() && name != "gemm")
      throw UsageError("cudnn: " + to_string(Op(op)) + ": unknown algorithm '" + name + "'; there is gemm");
  if (choice.max_error < std::numeric_limits<double>::infinity())
    refuse(op, "no bound on the error of cuBLAS's products is documented; leave max_error out");
  if (choice.math == Math::tf32 && spec.y.dtype == DType::f64)
    refuse(op, "tf32 rounds factors of f32; with f64 take strict math");
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
  return assemble(spec, [&](Pass pass) {
    Lowered::Step made = step(
        {pass}, "gemm",
        [problem, pass](const Args& args) {
          if (problem->dtype == DType::f64) return problem->run<double>(pass, args);
          problem->run<float>(pass, args);
        },
        problem->workspace_bytes);
    made.math = choice.math;
    return made;
  });
}

}  // namespace lamina::cudnn
