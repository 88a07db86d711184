// Turns parts into text and into descriptors, calls cuDNN's graph API, and tells descriptors the device.

#include "descriptor.h"

#include <algorithm>
#include <iterator>
#include <map>

#include "kept_plans.h"

namespace lamina::cudnn::graph {
namespace {

/// The parts that were seen so far, each with what was made of it.
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

/// Sets an attribute to numbers of type T. A fraction is two numbers: numerator and denominator.
template <class T>
void set(Descriptor& whole, int attribute, const Part::Value& value) {
  std::vector<T> elements;
  for (const std::int64_t number : value.numbers) {
    elements.push_back(static_cast<T>(number));
    if (value.type == type_fraction) elements.push_back(T{1});
  }
  whole.set(attribute, value.type, static_cast<std::int64_t>(value.numbers.size()), elements.data());
}

Descriptor made(const Target& device, const Part& part, Seen<Descriptor>& seen) {
  Descriptor whole(device.api(), part.kind);
  for (const auto& [attribute, value] : part.attributes) {
    std::vector<const Descriptor*> all;
    for (const PartRef& each : value.parts) {
      auto known = seen.find(each);
      if (known == seen.end()) known = seen.emplace(each, made(device, *each, seen)).first;
      all.push_back(&known->second);
    }
    switch (value.type) {
      case type_descriptor: whole.set(attribute, all); break;
      case type_boolean: set<char>(whole, attribute, value); break;
      case type_double: set<double>(whole, attribute, value); break;
      case type_char: whole.set(attribute, type_char, std::ssize(value.text), value.text.data()); break;
      case type_int64:
      case type_handle:
      case type_fraction: set<std::int64_t>(whole, attribute, value); break;
      default: set<int>(whole, attribute, value);
    }
  }
  device.tell(whole, part.kind);
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

void Descriptor::set(int attribute, Type type, std::int64_t count, const void* elements) {
  LAMINA_CUDNN(api(), BackendSetAttribute, object(), attribute, type, count, elements);
}

void Descriptor::set(int attribute, const std::vector<const Descriptor*>& others) {
  std::vector<void*> objects;
  for (const Descriptor* const other : others) objects.push_back(other->object());
  set(attribute, type_descriptor, static_cast<std::int64_t>(objects.size()), static_cast<const void*>(objects.data()));
}

void Descriptor::finalize() { LAMINA_CUDNN(api(), BackendFinalize, object()); }

std::int64_t Descriptor::read(Attribute attribute, Type type, std::int64_t room, void* elements) const {
  std::int64_t count = 0;
  LAMINA_CUDNN(api(), BackendGetAttribute, object(), attribute, type, room, &count, elements);
  return count;
}

std::int64_t Descriptor::int64(Attribute attribute) const {
  std::int64_t value = 0;
  read(attribute, type_int64, 1, &value);
  return value;
}

std::string Descriptor::text(Attribute attribute) const {
  std::string text(static_cast<std::size_t>(read(attribute, type_char, 0, nullptr)), ' ');
  if (!text.empty()) read(attribute, type_char, static_cast<std::int64_t>(text.size()), text.data());
  return text;
}

std::vector<int> Descriptor::enumerators(Attribute attribute, Type type, std::size_t room) const {
  std::vector<int> values(room);
  const std::int64_t count = read(attribute, type, static_cast<std::int64_t>(room), values.data());
  values.resize(std::min(room, static_cast<std::size_t>(count)));
  return values;
}

std::vector<Descriptor> Descriptor::descriptors(Attribute attribute, Kind kind, std::size_t room) const {
  const std::size_t wanted = room > 0 ? room : static_cast<std::size_t>(read(attribute, type_descriptor, 0, nullptr));
  std::vector<Descriptor> made;
  made.reserve(wanted);
  std::vector<void*> objects;
  for (std::size_t i = 0; i < wanted; ++i) objects.push_back(made.emplace_back(api(), kind).object());
  if (wanted == 0) return made;
  const std::int64_t count =
      read(attribute, type_descriptor, static_cast<std::int64_t>(wanted), static_cast<void*>(objects.data()));
  while (made.size() > static_cast<std::size_t>(count)) made.pop_back();
  return made;
}

Target::Target(const Api& api, const std::string& json) : api_(api), properties_(plan_properties(json)) {
  check_version(api, false);
  try {
    made_ = make(*this, {device_properties, {{device_json, json}}});
  } catch (const DeviceError& error) {
    if (!api.unopened.empty())
      throw LoadError(std::string(error.what()) + ". Parts of it did not open: " + api.unopened +
                      ". From 9.23 on it needs the driver's library, libcuda.so.1, to read a device's properties; on a "
                      "machine without a GPU a link of this name to lib64/stubs/libcuda.so of a CUDA toolkit will do");
    throw UsageError(std::string("cuDNN does not take these device properties: ") + error.what());
  }
}

Target::Target(const Api& api, HandleObject* handle) : api_(api), handle_(handle) {
  if (!at_least(api, 9, 8)) return;
  const Part told{device_properties, {{device_handle, {type_handle, reinterpret_cast<std::int64_t>(handle)}}}};
  std::string ignored;
  properties_ = attempt([&] { return plan_properties(make(*this, told).text(device_json)); }, ignored).value_or("");
}

void Target::tell(Descriptor& to, Kind kind) const {
  const auto tell = [&](int by_properties, int by_handle) {
    if (made_ && by_properties != 0) to.set(by_properties, {&*made_});
    if (!made_ && by_handle != 0) to.set(by_handle, type_handle, 1, static_cast<const void*>(&handle_));
  };
  switch (kind) {
    case operation_graph: return tell(0, graph_handle);
    case engine_heuristics: return tell(heuristics_device, 0);
    case engine: return tell(engine_device, 0);
    case execution_plan: return tell(plan_device, plan_handle);
    default: return;
  }
}

Descriptor make(const Target& device, const Part& part) {
  Seen<Descriptor> seen;
  return made(device, part, seen);
}

void check_version(const Api& api, bool makes_plans) {
  if (!at_least(api, 9, makes_plans ? 11 : 8))
    throw LoadError("cuDNN " + api.number() + (api.directory.empty() ? "" : " in " + api.directory) +
                    " is too old to " + (makes_plans ? "make plans for" : "describe") +
                    " a device that this machine does not have; give cuDNN 9." + (makes_plans ? "11" : "8") +
                    " or later");
}

}  // namespace lamina::cudnn::graph
