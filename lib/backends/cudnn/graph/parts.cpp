// Graphs as text, as descriptors, and by the tensors that they store.

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "operations.h"

namespace lamina::cudnn::graph {
namespace {

/// What was made of each part that was seen so far.
template <class T>
using Seen = std::map<PartRef, T>;

void append(std::string& text, const Part& part, Seen<std::size_t>& seen) {
  text += std::to_string(part.kind) + "(";
  for (const auto& [attribute, value] : part.attributes) {
    text += (text.back() == '(' ? "" : ", ") + std::to_string(attribute) + ":";
    for (const std::int64_t number : value.numbers)
      text += value.type == type_boolean ? number != 0 ? " yes" : " no"
                                         : " " + std::to_string(number) + (value.type == type_double ? ".0" : "");
    for (const PartRef& each : value.parts) {
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

/// Sets an attribute to numbers, each in the form that the library has for the type.
template <class T>
void set(Descriptor& whole, int attribute, const Part::Value& value) {
  std::vector<T> elements;
  for (const std::int64_t number : value.numbers) {
    elements.push_back(static_cast<T>(number));
    if (value.type == type_fraction) elements.push_back(T{1});
  }
  whole.set(attribute, value.type, static_cast<std::int64_t>(value.numbers.size()), elements.data());
}

Descriptor made(const Api& api, const Part& part, Seen<Descriptor>& seen, HandleObject* handle) {
  Descriptor whole(api, part.kind);
  if (handle != nullptr && part.kind == operation_graph)
    whole.set(graph_handle, type_handle, 1, static_cast<const void*>(&handle));
  for (const auto& [attribute, value] : part.attributes) {
    std::vector<const Descriptor*> all;
    for (const PartRef& each : value.parts) {
      auto known = seen.find(each);
      if (known == seen.end()) known = seen.emplace(each, made(api, *each, seen, handle)).first;
      all.push_back(&known->second);
    }
    switch (value.type) {
      case type_descriptor: whole.set(attribute, all); break;
      case type_boolean: set<char>(whole, attribute, value); break;
      case type_double: set<double>(whole, attribute, value); break;
      case type_int64:
      case type_fraction: set<std::int64_t>(whole, attribute, value); break;
      default: set<int>(whole, attribute, value);
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
  std::set<std::int64_t> ids;
  for (const auto& [attribute, value] : part.attributes) {
    if (attribute == tensor_id && value.numbers.front() < first_virtual) ids.insert(value.numbers.front());
    for (const PartRef& each : value.parts) std::ranges::copy(stored_tensors(*each), std::inserter(ids, ids.end()));
  }
  return {ids.begin(), ids.end()};
}

}  // namespace lamina::cudnn::graph
