// Checks which units and tensors the backend "cudnn" takes, before it calls an op's file. Makes the backend on a GPU,
// with the one cuDNN of this process.

#include "backend.h"

#include <algorithm>
#include <variant>

#include "lib/backends/common/conv_transpose.h"
#include "lib/backends/common/conv_unit.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/common/unit_checks.h"
#include "lib/backends/cudnn/conv/conv_algorithms.h"
#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/gpu_ops/gpu_ops.h"
#include "lib/core/device/math_environment.h"

namespace lamina::cudnn {
namespace {

bool has_algorithms(const Op& op) { return holds<Conv, ConvTranspose, FullyConnected, Recurrent>(op); }

/// Whether the op is computed on nhwc tensors. A fully connected op flattens x in the order of the layout, and its
/// weights have this order. Some ops take nhwc only if planes have one pixel: then the layouts are the same.
bool takes_nhwc(const Spec& spec) {
  const Op& op = spec.op;
  if (holds<Dropout, Lrn, Recurrent, Pad, Resize>(op) || spec.y.dtype == DType::f64) return false;
  if (holds<Concat, Slice>(op)) return may_be_view(op);
  const auto* const scale = std::get_if<ScaleShift>(&op);
  const bool of_planes = holds<PRelu>(op) || (holds<Binary>(op) && spec.x[0].shape != spec.x[1].shape) ||
                         (scale && (scale->by_channel || scale->learned));
  const bool only_without_pixels =
      holds<Softmax, Embedding, Reorder, Reduce, GroupNorm, LayerNorm>(op) || is_loss(op) || of_planes;
  return !only_without_pixels || (holds<Binary>(op) ? spec.y : spec.x[0]).shape.plane() == 1;
}

/// Whether our kernels compute the op and accept gaps between images.
bool is_own_with_pitch(const Op& op) {
  if (const auto* const function = std::get_if<Pointwise>(&op)) return !is_of_library(*function);
  return holds<Binary, ScaleShift, PRelu, Pad, Resize, Reorder, Reduce, GroupNorm, LayerNorm, Dropout, Concat, Slice>(
      op);
}

/// Whether `next` may follow a convolution and the first `count` ops of its tail, in the backend cudnn. In training
/// only a ReLU may follow; in inference a batch norm (folded into filter and bias), an Add, and a function. Without a
/// bias, and in f64, only a batch norm may follow. In f32 the library may compute convolution, bias, Add and ReLU in
/// one call. On halves our kernel adds the bias and applies the ReLU.
bool joins(const Spec& spec, std::size_t count, const Op& next) {
  const auto* const conv = std::get_if<Conv>(&spec.op);
  if (conv == nullptr) return false;
  const bool folded = count > 0 && holds<BatchNorm>(spec.tail[0]);
  const bool with_bias = spec.y.dtype != DType::f64 && (conv->bias || folded);
  if (spec.mode == Mode::training) return count == 0 && with_bias && holds<Relu>(next);
  return joins_inference(spec.tail, count, next) && (with_bias || holds<BatchNorm>(next));
}

/// The same, with or without engines. With engines, except in f64, units end where graphs end. The library's plain
/// calls can compute these tails, too.
bool joins(const Spec& spec, std::size_t count, const Op& next, bool engines) {
  return engines && spec.y.dtype != DType::f64 ? graph::joins_graph(spec, count, next) : joins(spec, count, next);
}

void check_spec(const Spec& spec, bool engines) {
  check_types("cudnn", spec);
  check_one_layout("cudnn", spec);
  if (spec.y.layout == Layout::nhwc && !takes_nhwc(spec))
    refuse(spec.op, "no nhwc layout in " + std::string(to_string(spec.y.dtype)) + "; it takes nchw");
  for (std::size_t i = 0; i < spec.tail.size(); ++i)
    if (!joins(spec, i, spec.tail[i], engines))
      refuse(spec.op, "cannot be fused with the op after it: " + std::string(op_name(spec.tail[i])));
}

void check_version(const Spec& spec, const Api& api) {
  if (half_type(spec) == DType::bf16 && !at_least(api, 8, 1))
    refuse(spec.op, "cuDNN " + api.number() + " has no bf16; give 8.1 or later");
}

/// Whether the library computes the unit on halves: all values have one type, and the library has the op. A recurrent
/// op is computed in f32.
bool library_takes_halves(const Spec& spec) {
  const auto* const function = std::get_if<Pointwise>(&spec.op);
  const bool of_library =
      std::visit([]<class T>(const T&) { return !OpOfOurKernels<T> && !std::is_same_v<T, Recurrent>; }, spec.op) &&
      (function == nullptr || is_of_library(*function));
  return of_library && has_one_type(spec);
}

/// Whether the unit is a fully connected op that runs as a convolution, because its graph is a convolution.
bool is_product_of_graph(const Spec& spec, const graph::UnitEngines* engines) {
  return engines != nullptr && holds<FullyConnected>(spec.op) && spec.y.dtype != DType::f64;
}

/// Lowers a unit whose values have one type that the library or our kernels take.
Lowered lower_in_one_type(const Spec& spec, const Choice& choice, Session& session) {
  return std::visit(
      [&](const auto& op) -> Lowered {
        if constexpr (std::is_same_v<std::decay_t<decltype(op)>, Input>) {
          return {};
        } else {
          if (is_product_of_graph(spec, session.engines)) {
            const Spec flat = graph::as_convolution(spec);
            return cudnn::lower(std::get<Conv>(flat.op), flat, choice, session);
          }
          Lowered lowered = cudnn::lower(op, spec, choice, session);
          if (!has_algorithms(spec.op)) check_direct("cudnn", spec, choice, lowered);
          return lowered;
        }
      },
      spec.op);
}

/// Whether forward may run again to recompute y. Some calls of the library write more than y.
bool recomputes(const Op& op) { return !holds<BatchNorm>(op) && !has_algorithms(op); }

class CudnnBackend final : public Backend, MixedPrecisionLowering {
 public:
  CudnnBackend(std::string name, std::unique_ptr<Machine> machine, Session::Open open,
               std::unique_ptr<graph::UnitEngines> engines)
      : name_(std::move(name)), session_(std::move(machine), std::move(open)), engines_(std::move(engines)) {
    session_.engines = engines_.get();
  }

  std::string_view name() const override { return name_; }

  std::string available() const override {
    if (std::string reason = session_.machine().unavailable(); !reason.empty()) return reason;
    try {
      session_.api();
    } catch (const LoadError& error) {
      return error.what();
    }
    return {};
  }

  /// "cuDNN 9.19.0 of <directory>, built for CUDA 12.9, ..."
  std::string describe() override {
    const Api& api = session_.api();
    std::string text = "cuDNN " + api.number();
    if (!api.directory.empty()) text += " of " + api.directory;
    if (api.GetCudartVersion != nullptr) {
      const std::size_t cuda = api.GetCudartVersion();
      text += ", built for CUDA " + std::to_string(cuda / 1000) + "." + std::to_string(cuda % 1000 / 10);
    }
    text += ", " + session_.describe_blas() + math_environment();
    if (engines_) text += ", " + engines_->describe();
    if (!api.unopened.empty()) text += ", parts that did not open: " + api.unopened;
    return text;
  }

  /// Opens the library and makes its handle, so that no pass does.
  Device& device() override {
    session_.handle();
    return session_.machine().device();
  }

  std::vector<std::string> algorithms(const Spec& spec, Pass pass) const override {
    if (holds<Input>(spec.op) || !has_pass(spec.op, pass)) return {};
    if (pass == Pass::recompute && !recomputes(spec.op)) return {};
    if (holds<ConvTranspose>(spec.op)) return algorithms(mirrored(spec), mirrored(pass));
    std::vector<std::string> names;
    if (engines_ && pass != Pass::recompute && (!has_halves(spec) || library_takes_halves(spec)))
      names = engines_->names(spec, pass, session_);
    const auto with = [&](const std::vector<std::string>& calls) {
      names.insert(names.end(), calls.begin(), calls.end());
      return names;
    };
    if (is_product_of_graph(spec, engines_.get())) return with(conv_algorithm_names(graph::as_convolution(spec), pass));
    if (holds<FullyConnected>(spec.op)) return {"gemm"};
    if (holds<Recurrent>(spec.op)) return recurrent_algorithms(spec);
    if (!holds<Conv>(spec.op)) return with({"direct"});
    return with(conv_algorithm_names(spec, pass));
  }

  bool fuses(const Spec& spec, const Node& next, int) const override {
    return joins(spec, spec.tail.size(), next.op, engines_ != nullptr);
  }
  bool masks_dx(const Spec& spec, const Spec& reader) const override {
    return engines_ && graph::joins_gradient(spec, reader);
  }
  bool takes_pitch(const Spec& spec) const override {
    return holds<Conv, ConvTranspose, Add>(spec.op) || may_be_view(spec.op) ||
           (is_own_with_pitch(spec.op) && spec.y.layout == Layout::nchw);
  }

  /// Opens the library. The queries for a convolution's algorithm and workspace need a handle, and so the device.
  /// Without a device the workspace is the choice's limit, and is reported as not exact.
  Lowered lower(const Spec& spec, const Choice& choice) override {
    check_enumerators(spec, choice);
    check_spec(spec, engines_ != nullptr);
    if (!takes_pitch(spec) && !is_dense(spec)) refuse(spec.op, "its tensors must be without gaps");
    if (!has_halves(spec)) return lower_in_one_type(spec, choice, session_);
    check_math("cudnn: " + to_string(spec.op), half_type(spec), choice.math);
    check_version(spec, session_.api());
    if (!library_takes_halves(spec)) return lower_on_copies(spec, choice, *this);
    if (choice.max_error < no_bound)
      refuse(spec.op, "no bound on the error of the library's calls on halves is documented; leave max_error out");
    return lower_in_one_type(spec, choice, session_);
  }

  void update(const Update& update) override {
    if (update.dtype != parameter_dtype(update.dtype))
      throw Unsupported("cudnn: no updates of " + std::string(to_string(update.dtype)) +
                        "; parameters have f32 or f64");
    session_.machine().update(update);
  }

  void check_overflow(const UpdateTensors& all) override { session_.machine().check_overflow(all); }
  double peak_flops_per_second(DType dtype) override { return session_.machine().peak_flops_per_second(dtype); }

 private:
  // Units on halves that the library does not take: our kernels compute some on halves, the others in f32 on copies.
  std::string_view backend() const override { return "cudnn"; }
  std::int64_t chunk_elements() const override { return cuda::gpu_chunk_elements; }
  bool takes_halves(const Spec& spec) const override { return cuda::gpu_op_takes_halves(spec.op); }
  Lowered lower_directly(const Spec& spec, const Choice& choice) const override {
    return lower_in_one_type(spec, choice, session_);
  }
  void convert(const Tensor& to, const Tensor& from) const override { session_.machine().convert(to, from, false); }

  std::string name_;
  mutable Session session_;
  std::unique_ptr<graph::UnitEngines> engines_;  // null in cudnn; destroyed, with its plans, before the session
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::string name, std::unique_ptr<Machine> machine, Session::Open open,
                                      std::unique_ptr<graph::UnitEngines> engines) {
  return std::make_unique<CudnnBackend>(std::move(name), std::move(machine), std::move(open), std::move(engines));
}

std::unique_ptr<Backend> make_backend(const std::string& name, const BackendOptions& options) {
  const std::string kind = name.substr(0, name.find(':')),
                    directory = name.substr(std::min(name.size(), kind.size() + 1));
  if (name != kind && directory.empty())
    throw UsageError("backend " + name + ": there is no directory after the colon; give " + kind + ":<directory>, or " +
                     kind + " alone");
  std::unique_ptr<graph::UnitEngines> engines;
  if (kind == "cudnn-graph") engines = std::make_unique<graph::UnitEngines>(options.device_properties, options.plans);
  std::unique_ptr<Machine> machine = make_cuda_machine(options);
  const auto claim = std::make_shared<const Claim>(directory);
  return make_backend(
      name, std::move(machine), [directory, claim]() -> const Api& { return process_library(directory); },
      std::move(engines));
}

}  // namespace lamina::cudnn
