// Which uses of the file's numbers share a parameter.

#include "shared.h"

#include <algorithm>
#include <functional>

#include "lib/onnx/file/constant.h"

namespace lamina::onnx {
namespace {

std::size_t hash_of(const std::vector<double>& values) {
  std::size_t sum = values.size();
  for (const double value : values) sum = sum * 31 + std::hash<double>()(value);
  return sum;
}

/// The parameters and buffers among the operands of a call: %p_conv1_weight, %b_norm_running_mean.
std::vector<std::string_view> operands(std::string_view call) {
  constexpr std::size_t most = 64;  // a hostile file has more
  std::vector<std::string_view> found;
  for (std::size_t at = call.find('%'); at != call.npos && found.size() < most; at = call.find('%', at + 1)) {
    const std::string_view name = call.substr(at, call.find_first_of(" ,)]", at) - at);
    if (name.starts_with("%p_") || name.starts_with("%b_")) found.push_back(name);
  }
  return found;
}

}  // namespace

bool SharedWeights::are_one(const Known& a, const Known& b) {
  if (a.use.shape != b.use.shape || a.use.source.part != b.use.source.part) return false;
  const bool one_origin = a.use.origin == b.use.origin;
  if (!one_origin && (a.alike || a.use.source.transposed == b.use.source.transposed)) return false;
  if (!a.operands.empty() && !b.operands.empty())
    return std::ranges::find_first_of(a.operands, b.operands) != a.operands.end();
  return !a.alike || a.use.source.value == b.use.source.value;
}

void SharedWeights::note_apart(const Known& known, const TensorFile& weights) {
  const std::vector<double>& values = weights.at(known.use.name).values;
  if (known.alike || static_cast<std::int64_t>(values.size()) != known.use.whole) return;
  const auto [first, is_new] = of_all_.try_emplace(known.use.origin, known.use.name);
  if (is_new || weights.at(first->second).values == values) return;
  notes_.push_back(first->second + " and " + known.use.name + " are the parameter \"" + std::string(known.use.origin) +
                   "\" in different orders or scales: here they train as two");
}

std::string SharedWeights::add(const WeightUse& use, const TensorFile& weights) {
  const std::vector<double>& values = weights.at(use.name).values;
  std::vector<Known>& others = uses_[{use.parameter, hash_of(values)}];
  Known known{use, operands(use.traced), values.empty() || all_are(values, values.front())};
  for (const Known& other : others)
    if (are_one(other, known) && weights.at(other.use.name).values == values) return other.use.name;
  note_apart(known, weights);
  others.push_back(std::move(known));
  return {};
}

}  // namespace lamina::onnx
