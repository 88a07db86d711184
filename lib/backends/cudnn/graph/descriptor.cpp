// The calls of cuDNN's graph API.

#include "descriptor.h"

#include <algorithm>

namespace lamina::cudnn::graph {

void Descriptor::set(int attribute, Type type, std::int64_t count, const void* elements) {
  LAMINA_CUDNN(api(), BackendSetAttribute, object(), attribute, type, count, elements);
}

void Descriptor::set(int attribute, std::span<const std::int64_t> values) {
  set(attribute, type_int64, static_cast<std::int64_t>(values.size()), values.data());
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

}  // namespace lamina::cudnn::graph
