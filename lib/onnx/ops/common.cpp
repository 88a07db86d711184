// Functions that the operators share: the required order of axes, and numbers in range.

#include <algorithm>
#include <limits>

#include "operators.h"

namespace lamina::onnx {

void refuse_order(const std::string& why) {
  throw Refusal{why + ": a permute or view before it would have to move numbers", true};
}

void refuse_input(const DynamicValue& x, const std::string& why) {
  refuse_order("its input of " + text(extents(x.view)) + " is kept as " + to_string(x.value.shape()) + ", " + why);
}

Value as_image(const DynamicValue& x) {
  const Shape s = x.value.shape();
  const Extents own = extents(x.view);
  const bool fits = (own == Extents{s.n, s.c, s.h, s.w} || (own == Extents{s.n, s.c, s.h} && s.w == 1)) &&
                    x.view[0] == axis(s.n, s.image()) && x.view[1] == axis(s.c, s.plane()) &&
                    x.view[2] == axis(s.h, s.w) && (own.size() == 3 || x.view[3] == axis(s.w, 1));
  if (!fits) refuse_input(x, "in another order or grouping");
  return x.value;
}

void drop_zeros(const NodeContext& context, std::vector<double>& bias, std::size_t input) {
  const auto is_zero = [](double number) { return number == 0; };
  const bool trains = context.constant(input, "its bias").origin != Origin::number;
  if (!trains && std::all_of(bias.begin(), bias.end(), is_zero)) bias.clear();
}

View with_channels(const View& view, const Shape& before, const Shape& after, std::int64_t group) {
  View result = view;
  for (Axis& axis : result) {
    Axis changed;
    for (const OnnxFactor& factor : axis) {
      if (factor.stride >= before.image()) {
        changed.push_back({factor.extent, factor.stride / before.image() * after.image()});
      } else if (factor.extent * factor.stride <= group * before.plane()) {
        changed.push_back(factor);
      } else if (factor == OnnxFactor{before.c / group, group * before.plane()}) {
        if (after.c != group) changed.push_back({after.c / group, group * after.plane()});
      } else {
        refuse_order("its channels are joined with other axes");
      }
    }
    axis = changed;
  }
  return result;
}

int narrow(const NodeContext& context, std::int64_t number, std::int64_t least, std::string_view what) {
  if (number < least || number > std::numeric_limits<int>::max()) {
    context.attributes().invalid("has the " + std::string(what) + " " + std::to_string(number));
  }
  return static_cast<int>(number);
}

double text_number(double number) {
  const auto single = static_cast<float>(number);
  return single == number ? as_written(single) : number;
}

double limit_of(const NodeContext& context, std::size_t input, const std::string& what) {
  const Constant& number = context.constant(input, what);
  if (number.count() != 1) throw Refusal{what + " has " + text(number.extents) + " numbers: only one is read"};
  return text_number(number.at(0));
}

}  // namespace lamina::onnx
