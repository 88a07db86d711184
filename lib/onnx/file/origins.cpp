// Which tensors of a file are parameters: by the options, by metadata of PyTorch's exporter, or by their names.

#include "origins.h"

#include <algorithm>
#include <cctype>

#include "lamina/error.h"
#include "lib/core/text/utf8.h"

namespace lamina::onnx {
namespace {

/// Calls visit(part) for each part between single quotes.
template <class Visit>
void for_each_quoted(std::string_view text, Visit visit) {
  for (std::size_t begin = 0, end = 0;; begin = end + 1) {
    begin = text.find('\'', begin);
    if (begin == text.npos || (end = text.find('\'', begin + 1)) == text.npos) return;
    visit(text.substr(begin + 1, end - begin - 1));
  }
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Whether the name is the exporter's and not the model's: "/Constant_output_0", "onnx::Mul_18", "val_7", "12".
bool is_made_up(std::string_view name) {
  return name.starts_with('/') || name.find("::") != name.npos || all_digits(name) ||
         (name.starts_with("val_") && all_digits(name.substr(4)));
}

}  // namespace

Origins::Origins(const ModelMessage& model, const OnnxOptions& options, const std::string& file)
    : of_pytorch_(model.producer == "pytorch") {
  // "p_conv_weight: PARAMETER target='conv.weight'", a line for each input of the module
  std::string_view lines = model.graph->signature;
  while (!lines.empty()) {
    const std::string_view line = lines.substr(0, lines.find('\n'));
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
    const std::size_t colon = line.find(": "), target = line.find(" target='");
    if (colon == line.npos || target == line.npos || target < colon) continue;
    const bool is_parameter = line.substr(colon + 2, target - colon - 2) == "PARAMETER";
    for_each_quoted(line.substr(target), [&](std::string_view name) {
      stated_.emplace(name, is_parameter ? Origin::parameter : Origin::number);
    });
  }
  for (const ValueMessage& value : model.graph->values)
    if (!value.folded_from.empty()) folded_from_.emplace(value.name, value.folded_from);

  for (const auto& [pattern, trains] : options.trains) {
    bool any = false;
    for (const TensorMessage& tensor : model.graph->initializers) {
      const bool fits = pattern.starts_with('*') ? tensor.name.ends_with(std::string_view(pattern).substr(1))
                                                 : tensor.name == pattern;
      if (fits) given_[tensor.name] = trains ? Origin::parameter : Origin::number;
      any = any || fits;
    }
    if (!any) throw UsageError(file + ": " + in_quotes(pattern) + " of OnnxOptions::trains names no initializer");
  }
}

Origin Origins::of(std::string_view initializer) const {
  const auto given = given_.find(initializer);
  return given != given_.end() ? given->second : by_file(initializer);
}

std::string_view Origins::source_of(std::string_view initializer) const {
  std::string_view source;
  if (const auto its = folded_from_.find(initializer); its != folded_from_.end())
    for_each_quoted(its->second, [&](std::string_view name) {
      const auto found = stated_.find(name);
      if (found != stated_.end() && found->second == Origin::parameter) source = source.empty() ? name : its->first;
    });
  return source == initializer ? std::string_view() : source;
}

Origin Origins::by_file(std::string_view initializer) const {
  if (!are_stated()) return of_pytorch_ && !is_made_up(initializer) ? Origin::parameter : Origin::tensor;
  if (const auto its = stated_.find(initializer); its != stated_.end()) return its->second;
  if (const auto its = folded_from_.find(initializer); its != folded_from_.end()) {
    Origin most = Origin::number;
    for_each_quoted(its->second, [&](std::string_view name) {
      if (const auto source = stated_.find(name); source != stated_.end()) most = std::max(most, source->second);
    });
    return most;
  }
  return is_made_up(initializer) ? Origin::number : Origin::tensor;
}

}  // namespace lamina::onnx
