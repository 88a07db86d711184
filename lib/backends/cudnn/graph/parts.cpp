// Graphs as text, as descriptors, and by the tensors that they store.

#include <algorithm>
#include <map>

#include "operations.h"

namespace lamina::cudnn::graph {
namespace {

using Numbers = std::vector<std::int64_t>;

/// What was made of the parts that were seen.
template <class T>
using Seen = std::map<PartRef, T>;

void append(std::string& text, const Part& part, Seen<std::size_t>& seen) {
  const auto numbers = [&](const Numbers& values) {
    for (const std::int64_t value : values) text += " " + std::to_string(value);
  };
  text += std::to_string(part.kind) + "(";
  for (const auto& [attribute, value] : part.attributes) {
    text += (text.back() == '(' ? "" : ", ") + std::to_string(attribute) + ":";
    if (const auto* const flag = std::get_if<bool>(&value)) text += *flag ? " yes" : " no";
    if (const auto* const real = std::get_if<double>(&value)) text += *real == 0 ? " 0.0" : " 1.0";
    if (const auto* const coded = std::get_if<Coded>(&value)) numbers({coded->value});
    if (const auto* const list = std::get_if<Numbers>(&value)) numbers(*list);
    if (const auto* const list = std::get_if<Fractions>(&value)) numbers(list->values);
    if (const auto* const parts = std::get_if<std::vector<PartRef>>(&value))
      for (const PartRef& each : *parts) {
        text += " ";
        if (const auto known = seen.find(each); known != seen.end()) {
          text += "#" + std::to_string(known->second);
          continue;
        }
        append(text, *each, seen);
        seen.emplace(each, seen.size());
      }
  }
  text += ")";
}

Descriptor made(const Api& api, const Part& part, Seen<Descriptor>& seen, HandleObject* handle) {
  Descriptor whole(api, part.kind);
  if (handle != nullptr && part.kind == operation_graph)
    whole.set(graph_handle, type_handle, 1, static_cast<const void*>(&handle));
  for (const auto& [attribute, value] : part.attributes) {
    if (const auto* const flag = std::get_if<bool>(&value)) whole.set(attribute, type_boolean, 1, flag);
    if (const auto* const real = std::get_if<double>(&value)) whole.set(attribute, type_double, 1, real);
    if (const auto* const coded = std::get_if<Coded>(&value)) whole.set(attribute, coded->type, 1, &coded->value);
    if (const auto* const list = std::get_if<Numbers>(&value)) whole.set(attribute, *list);
    if (const auto* const list = std::get_if<Fractions>(&value)) {
      Numbers pairs;
      for (const std::int64_t numerator : list->values) pairs.insert(pairs.end(), {numerator, 1});
      whole.set(attribute, type_fraction, static_cast<std::int64_t>(list->values.size()), pairs.data());
    }
    if (const auto* const parts = std::get_if<std::vector<PartRef>>(&value)) {
      std::vector<const Descriptor*> all;
      for (const PartRef& each : *parts) {
        auto known = seen.find(each);
        if (known == seen.end()) known = seen.emplace(each, made(api, *each, seen, handle)).first;
        all.push_back(&known->second);
      }
      whole.set(attribute, all);
    }
  }
  whole.finalize();
  return whole;
}

}  // namespace

std::string to_string(const Part& part) {
  std::string text;
  Seen<std::size_t> numbers;
  append(text, part, numbers);
  return text;
}

Descriptor make(const Api& api, const Part& part, HandleObject* handle) {
  Seen<Descriptor> seen;
  return made(api, part, seen, handle);
}

std::vector<std::int64_t> stored_tensors(const Part& part) {
  std::vector<std::int64_t> ids;
  for (const auto& [attribute, value] : part.attributes) {
    if (attribute == tensor_id && part.kind == tensor)
      if (const std::int64_t id = std::get<Numbers>(value).front(); id < first_virtual) ids.push_back(id);
    if (const auto* const parts = std::get_if<std::vector<PartRef>>(&value))
      for (const PartRef& each : *parts)
        for (const std::int64_t id : stored_tensors(*each)) ids.push_back(id);
  }
  std::ranges::sort(ids);
  const auto twice = std::ranges::unique(ids);
  ids.erase(twice.begin(), twice.end());
  return ids;
}

}  // namespace lamina::cudnn::graph
