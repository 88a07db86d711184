// Ops as text: their names, their numbers, and the names of their parameters and state.

#include "lamina/op.h"

#include <initializer_list>

#include "lib/core/text/enumerators.h"
#include "lib/core/text/one_of.h"
#include "lib/core/text/shortest.h"
#include "lib/core/units/binary.h"
#include "lib/core/units/box.h"
#include "lib/core/units/functions.h"
#include "lib/core/units/reorder.h"

namespace lamina {
namespace {

std::string text(Size size) { return std::to_string(size.h) + 'x' + std::to_string(size.w); }

/// The name of `value`, from the names of its enumeration in order; an invalid value's number, for an error.
template <class Enumeration>
std::string name_or_number(Enumeration value, std::initializer_list<const char*> names) {
  const auto i = static_cast<std::size_t>(value);
  return i < names.size() ? names.begin()[i] : std::to_string(static_cast<int>(value));
}

/// Collects the numbers of an op into "name(a, b, c)".
class Phrase {
 public:
  explicit Phrase(std::string_view name) : text_(name) {}

  Phrase& always(const std::string& number) {
    text_ += (empty_ ? "(" : ", ") + number;
    empty_ = false;
    return *this;
  }
  Phrase& unless_default(bool is_default, const std::string& number) { return is_default ? *this : always(number); }
  std::string str() const { return empty_ ? text_ : text_ + ')'; }

 private:
  std::string text_;
  bool empty_ = true;
};

struct Name {
  std::string_view operator()(const Input&) const { return "input"; }
  std::string_view operator()(const Conv&) const { return "conv"; }
  std::string_view operator()(const ConvTranspose&) const { return "conv_transpose"; }
  std::string_view operator()(const MaxPool&) const { return "max_pool"; }
  std::string_view operator()(const AveragePool&) const { return "average_pool"; }
  std::string_view operator()(const GlobalAveragePool&) const { return "global_average_pool"; }
  std::string_view operator()(const BatchNorm&) const { return "batch_norm"; }
  std::string_view operator()(const GroupNorm&) const { return "group_norm"; }
  std::string_view operator()(const LayerNorm&) const { return "layer_norm"; }
  std::string_view operator()(const Lrn&) const { return "lrn"; }
  std::string_view operator()(const Relu&) const { return "relu"; }
  std::string_view operator()(const FullyConnected&) const { return "fully_connected"; }
  std::string_view operator()(const Dropout&) const { return "dropout"; }
  std::string_view operator()(const Softmax&) const { return "softmax"; }
  std::string_view operator()(const Pointwise& op) const { return row_of(op.function).name; }
  std::string_view operator()(const SoftmaxCrossEntropy&) const { return "softmax_cross_entropy"; }
  std::string_view operator()(const SigmoidCrossEntropy&) const { return "sigmoid_cross_entropy"; }
  std::string_view operator()(const Embedding&) const { return "embedding"; }
  std::string_view operator()(const Recurrent& op) const { return op.cell == Cell::gru ? "gru" : "lstm"; }
  std::string_view operator()(const Add&) const { return "add"; }
  std::string_view operator()(const Binary& op) const { return row_of(op.function).name; }
  std::string_view operator()(const ScaleShift&) const { return "scale_shift"; }
  std::string_view operator()(const PRelu&) const { return "prelu"; }
  std::string_view operator()(const Pad&) const { return "pad"; }
  std::string_view operator()(const Resize&) const { return "resize"; }
  std::string_view operator()(const Reorder& op) const {
    return shuffled_groups(op) > 0 ? "channel_shuffle" : "reorder";
  }
  std::string_view operator()(const Reduce&) const { return "reduce"; }
  std::string_view operator()(const Concat&) const { return "concat"; }
  std::string_view operator()(const Slice&) const { return "slice"; }
};

/// The numbers of one op, after its name; empty for ops without numbers.
struct Numbers {
  Phrase& phrase;

  void operator()(const Input& op) const { phrase.always(to_string(op.shape)); }
  void operator()(const OneOf<Conv, ConvTranspose> auto& op) const {
    phrase.always(std::to_string(op.channels))
        .always(text(op.kernel))
        .unless_default(op.stride == 1, "stride " + text(op.stride))
        .unless_default(op.pad == 0, "pad " + text(op.pad));
    if constexpr (requires { op.output_pad; })
      phrase.unless_default(op.output_pad == 0, "output pad " + text(op.output_pad));
    phrase.unless_default(op.dilation == 1, "dilation " + text(op.dilation))
        .unless_default(op.groups == 1, "groups " + std::to_string(op.groups))
        .unless_default(op.bias, "no bias");
  }
  void operator()(const OneOf<MaxPool, AveragePool> auto& op) const {
    phrase.always(text(op.window))
        .always("stride " + text(op.stride))
        .unless_default(op.pad == 0, "pad " + text(op.pad))
        .unless_default(op.rounding == Rounding::down, "rounded up");
    if constexpr (requires { op.count_padding; }) phrase.unless_default(!op.count_padding, "padding counted");
  }
  void operator()(const BatchNorm& op) const {
    phrase.unless_default(op.epsilon == BatchNorm{}.epsilon, "epsilon " + shortest(op.epsilon))
        .unless_default(op.momentum == BatchNorm{}.momentum, "momentum " + shortest(op.momentum))
        .unless_default(op.ranks == 1, "over " + std::to_string(op.ranks) + " ranks");
  }
  void operator()(const OneOf<GroupNorm, LayerNorm> auto& op) const {
    if constexpr (requires { op.groups; }) phrase.always(std::to_string(op.groups));
    phrase.unless_default(op.epsilon == LayerNorm{}.epsilon, "epsilon " + shortest(op.epsilon))
        .unless_default(op.affine, "not affine");
  }
  void operator()(const Lrn& op) const {
    phrase.unless_default(op.size == Lrn{}.size, "size " + std::to_string(op.size))
        .unless_default(op.alpha == Lrn{}.alpha, "alpha " + shortest(op.alpha))
        .unless_default(op.beta == Lrn{}.beta, "beta " + shortest(op.beta))
        .unless_default(op.k == Lrn{}.k, "k " + shortest(op.k));
  }
  void operator()(const FullyConnected& op) const {
    phrase.always(std::to_string(op.outputs)).unless_default(op.bias, "no bias");
  }
  void operator()(const Dropout& op) const {
    phrase.unless_default(op.rate == Dropout{}.rate, "rate " + shortest(op.rate))
        .unless_default(op.seed == Dropout{}.seed, "seed " + std::to_string(op.seed))
        .unless_default(op.batch_offset == 0, "from image " + std::to_string(op.batch_offset));
  }
  void operator()(const Slice& op) const {
    phrase.always("first " + std::to_string(op.first))
        .always(std::string(axis_name(op.axis)) + ' ' + std::to_string(op.count))
        .unless_default(op.step == 1, "step " + std::to_string(op.step));
  }
  void operator()(const Pointwise& op) const {
    const auto number = [&](const char* name, double value, double usual) {
      phrase.unless_default(value == usual, name + shortest(value));
    };
    switch (op.function) {
      case Function::clip: phrase.always(shortest(op.a)).always(shortest(op.b)); break;
      case Function::pow:
      case Function::leaky_relu: phrase.always(shortest(op.a)); break;
      case Function::hard_sigmoid: number("alpha ", op.a, 1.0 / 6), number("beta ", op.b, 0.5); break;
      case Function::elu: number("alpha ", op.a, 1), number("scale ", op.b, 1); break;
      case Function::celu: number("alpha ", op.a, 1); break;
      default: break;
    }
  }
  void operator()(const ScaleShift& op) const {
    phrase.unless_default(op.by_channel, "one for all channels").unless_default(!op.learned, "learned");
  }
  void operator()(const PRelu& op) const { phrase.unless_default(op.by_channel, "one for all channels"); }
  void operator()(const Pad& op) const {
    phrase.always("before " + text(op.before))
        .always("after " + text(op.after))
        .unless_default(op.channels_before == 0 && op.channels_after == 0,
                        "channels " + std::to_string(op.channels_before) + " and " + std::to_string(op.channels_after))
        .unless_default(op.value == 0, "value " + shortest(op.value));
    phrase.unless_default(op.by == PadBy::value, "by " + name_or_number(op.by, {"value", "edge", "reflect", "wrap"}));
  }
  void operator()(const Resize& op) const {
    phrase.always(text(op.to))
        .unless_default(op.step_h == 0 && op.step_w == 0, "step " + shortest(op.step_h) + "x" + shortest(op.step_w));
    phrase.unless_default(op.by == ResizeBy::nearest,
                          name_or_number(op.by, {"nearest", "nearest exact", "linear", "linear aligned"}));
  }
  void operator()(const Reorder& op) const {
    if (const int groups = shuffled_groups(op); groups > 0)
      return void(phrase.always("groups " + std::to_string(groups)));
    const auto list = [](const Axes& numbers) {
      std::string all;
      for (const int number : numbers) all += (all.empty() ? "" : "x") + std::to_string(number);
      return all;
    };
    phrase.always(list(op.extents)).always("order " + list(op.order));
    phrase.always("to " + list({op.channels, op.pixels.h, op.pixels.w}));
  }
  void operator()(const Reduce& op) const {
    phrase.always(name_or_number(op.by, {"mean", "sum", "max"}))
        .unless_default(!op.channels, "channels")
        .unless_default(!op.rows, "rows")
        .unless_default(!op.columns, "columns");
  }
  void operator()(const Softmax& op) const {
    phrase.unless_default(!op.log, "log")
        .unless_default(op.axis == Axis::channel, op.axis == Axis::row ? "along rows" : "along columns");
  }
  void operator()(const OneOf<SoftmaxCrossEntropy, SigmoidCrossEntropy> auto& op) const {
    phrase.unless_default(op.clip == 0, "clip " + shortest(op.clip));
  }
  void operator()(const Embedding& op) const {
    phrase.always(std::to_string(op.vocabulary)).always(std::to_string(op.features));
  }
  void operator()(const Recurrent& op) const {
    phrase.always(std::to_string(op.hidden))
        .unless_default(op.steps == Steps::all, "last step")
        .unless_default(op.gates == Gates::logistic, "hard sigmoid")
        .unless_default(!op.reverse, "reverse")
        .unless_default(op.vocabulary == 0, "vocabulary " + std::to_string(op.vocabulary));
  }
  void operator()(const Concat& op) const {
    phrase.unless_default(op.axis == Axis::channel, std::string(axis_name(op.axis)));
  }
  void operator()(const OneOf<GlobalAveragePool, Relu, Add, Binary> auto& /*without_numbers*/) const {}
};

std::vector<std::string_view> weight_and(bool bias) {
  if (bias) return {"weight", "bias"};
  return {"weight"};
}

}  // namespace

std::string_view op_name(const Op& op) { return std::visit(Name{}, op); }

std::string to_string(const Op& op) {
  Phrase phrase(op_name(op));
  std::visit(Numbers{phrase}, op);
  return phrase.str();
}

std::vector<std::string_view> parameter_names(const Op& op) {
  if (const auto* it = std::get_if<Conv>(&op)) return weight_and(it->bias);
  if (const auto* it = std::get_if<ConvTranspose>(&op)) return weight_and(it->bias);
  if (const auto* it = std::get_if<FullyConnected>(&op)) return weight_and(it->bias);
  if (const auto* it = std::get_if<GroupNorm>(&op); it != nullptr && !it->affine) return {};
  if (const auto* it = std::get_if<LayerNorm>(&op); it != nullptr && !it->affine) return {};
  if (is_norm(op)) return weight_and(true);
  if (holds<Embedding, PRelu>(op)) return weight_and(false);
  if (std::holds_alternative<Recurrent>(op)) return {"weight_ih_l0", "weight_hh_l0", "bias_l0"};
  if (const auto* it = std::get_if<ScaleShift>(&op); it != nullptr && it->learned) return {"scale", "shift"};
  return {};
}

std::vector<std::string_view> state_names(const Op& op) {
  if (std::holds_alternative<BatchNorm>(op)) return {"running_mean", "running_var"};
  if (const auto* it = std::get_if<ScaleShift>(&op); it != nullptr && !it->learned) return {"scale", "shift"};
  if (std::holds_alternative<Dropout>(op)) return {"step"};
  return {};
}

bool is_norm(const Op& op) { return holds<BatchNorm, GroupNorm, LayerNorm>(op); }

bool is_loss(const Op& op) { return holds<SoftmaxCrossEntropy, SigmoidCrossEntropy>(op); }

DType parameter_dtype(DType dtype) { return is_half(dtype) ? DType::f32 : dtype; }

DType state_dtype(const Op& op, DType dtype) {
  return std::holds_alternative<Dropout>(op) ? DType::u64 : parameter_dtype(dtype);
}

DType input_dtype(const Op& op, const std::vector<Shape>& x, std::size_t i, DType dtype) {
  return whole_numbers(op, x, i) > 0 ? parameter_dtype(dtype) : dtype;
}

DType output_dtype(const Op& op, DType dtype) { return is_loss(op) ? parameter_dtype(dtype) : dtype; }

std::string_view to_string(Pass pass) {
  return enumerator_name(pass, "pass", {"forward", "backward_params", "backward_data", "prepare", "recompute"});
}

}  // namespace lamina
