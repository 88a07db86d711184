// The text of a refusal. It names every refused operator, with counts.

#include <algorithm>

#include "importer.h"
#include "lib/core/text/utf8.h"

namespace lamina::onnx {
namespace {

constexpr std::size_t most_lines = 6;    // kinds with a line each; the others share a line
constexpr std::size_t most_listed = 60;  // kinds in that line

/// The reason without its numbers and names: equal kinds are reported together.
std::string kind_of(std::string_view why) {
  std::string kind;
  bool quoted = false;
  for (const char c : why) {
    if (c == '\'') quoted = !quoted;
    if (!quoted && c != 'x' && (c < '0' || c > '9')) kind += c;
  }
  return kind;
}

}  // namespace

void Refusals::add(std::string_view op, const std::string& node, const std::string& why) {
  const std::string its_op(op.substr(0, 40)), key = its_op + ": " + (each_ ? node + why : kind_of(why));
  const auto [place, is_new] = places_.emplace(key, kinds_.size());
  if (is_new) kinds_.push_back({.op = its_op, .first = node, .why = why});
  ++kinds_[place->second].count;
}

std::string Refusals::text(std::int64_t opset) const {
  std::size_t things = 0, lines = 0;
  std::string reasons;
  std::vector<Kind> others, unjudged;  // by operator
  for (const Kind& kind : kinds_) {
    const std::string counted = std::to_string(kind.count) + " " + kind.op + ", first ";
    things += kind.why.empty() ? 0 : kind.count;
    if (!kind.why.empty() && (each_ || lines < most_lines)) {
      ++lines;
      reasons += "\n  " + (kind.count > 1 ? counted : "");
      if (!kind.op.empty())
        reasons += in_quotes(kind.first) + " (" + (kind.count > 1 ? "" : kind.op + ", ") + "opset " +
                   std::to_string(opset) + "): ";
      reasons += kind.why;
      continue;
    }
    std::vector<Kind>& list = kind.why.empty() ? unjudged : others;
    const auto found = std::ranges::find(list, kind.op, &Kind::op);
    found == list.end() ? list.push_back(kind) : void(found->count += kind.count);
  }
  const auto listed = [](const std::vector<Kind>& list) {
    std::string text;
    for (std::size_t i = 0; i < std::min(list.size(), most_listed); ++i)
      text += (i == 0 ? "" : "; ") + std::to_string(list[i].count) + " " + list[i].op + ", first " +
              in_quotes(list[i].first);
    return text + (list.size() > most_listed ? "; and others" : "");
  };
  std::string text = std::to_string(things) + (things == 1 ? " thing is" : " things are") + " not supported:" + reasons;
  if (!others.empty()) text += "\nnot supported for other reasons: " + listed(others);
  if (!unjudged.empty()) text += "\nnot judged, because they follow those above: " + listed(unjudged);
  text += "\ndocs/onnx.md lists what is supported";
  return things > lines ? text + "; OnnxOptions::all_refusals (--all_refusals) gives a line for each node" : text;
}

}  // namespace lamina::onnx
