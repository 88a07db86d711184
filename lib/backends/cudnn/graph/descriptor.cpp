// The calls of cuDNN's graph API.

#include "descriptor.h"

#include <algorithm>
#include <utility>

#include "lib/backends/cudnn/library/call.h"
#include "lib/backends/cudnn/library/status.h"

namespace lamina::cudnn::graph {

Descriptor::Descriptor(const Api& api, Kind kind) : api_(&api) {
  LAMINA_CUDNN(api, BackendCreateDescriptor, kind, &object_);
}

Descriptor::~Descriptor() {
  if (object_ != nullptr && api_->BackendDestroyDescriptor != nullptr) api_->BackendDestroyDescriptor(object_);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : api_(other.api_), object_(std::exchange(other.object_, nullptr)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(api_, other.api_);
  std::swap(object_, other.object_);
  return *this;
}

void Descriptor::set(int attribute, Type type, std::int64_t count, const void* elements) {
  LAMINA_CUDNN(*api_, BackendSetAttribute, object_, attribute, type, count, elements);
}

void Descriptor::set(int attribute, std::span<const std::int64_t> values) {
  set(attribute, type_int64, static_cast<std::int64_t>(values.size()), values.data());
}

void Descriptor::set(int attribute, const Descriptor& other) {
  set(attribute, type_descriptor, 1, static_cast<const void*>(&other.object_));
}

void Descriptor::set(int attribute, const std::vector<const Descriptor*>& others) {
  std::vector<void*> objects;
  for (const Descriptor* const other : others) objects.push_back(other->object_);
  set(attribute, type_descriptor, static_cast<std::int64_t>(objects.size()), static_cast<const void*>(objects.data()));
}

void Descriptor::finalize() { LAMINA_CUDNN(*api_, BackendFinalize, object_); }

bool Descriptor::finalize_if_supported() {
  const Status status = need(*api_, api_->BackendFinalize, "cudnnBackendFinalize")(object_);
  if (meaning(*api_, status) == Meaning::not_supported) return false;
  check(*api_, status, "cudnnBackendFinalize", __FILE__, __LINE__);
  return true;
}

std::int64_t Descriptor::get(Attribute attribute, Type type, std::int64_t room, void* elements) const {
  std::int64_t count = 0;
  LAMINA_CUDNN(*api_, BackendGetAttribute, object_, attribute, type, room, &count, elements);
  return count;
}

std::int64_t Descriptor::int64(Attribute attribute) const {
  std::int64_t value = 0;
  get(attribute, type_int64, 1, &value);
  return value;
}

std::string Descriptor::text(Attribute attribute) const {
  std::string text(static_cast<std::size_t>(get(attribute, type_char, 0, nullptr)), ' ');
  if (!text.empty()) get(attribute, type_char, static_cast<std::int64_t>(text.size()), text.data());
  return text;
}

int Descriptor::enumerator(Attribute attribute, Type type) const {
  int value = 0;
  get(attribute, type, 1, &value);
  return value;
}

std::vector<int> Descriptor::enumerators(Attribute attribute, Type type, std::size_t room) const {
  std::vector<int> values(room);
  const std::int64_t count = get(attribute, type, static_cast<std::int64_t>(room), values.data());
  values.resize(std::min(room, static_cast<std::size_t>(count)));
  return values;
}

void Descriptor::copy_to(Attribute attribute, Descriptor& into) const {
  get(attribute, type_descriptor, 1, static_cast<void*>(&into.object_));
}

std::vector<Descriptor> Descriptor::descriptors(Attribute attribute, Kind kind, std::size_t room) const {
  const std::size_t wanted = room > 0 ? room : static_cast<std::size_t>(get(attribute, type_descriptor, 0, nullptr));
  std::vector<Descriptor> made;
  made.reserve(wanted);
  std::vector<void*> objects;
  for (std::size_t i = 0; i < wanted; ++i) objects.push_back(made.emplace_back(*api_, kind).object_);
  if (wanted == 0) return made;
  const std::int64_t count =
      get(attribute, type_descriptor, static_cast<std::int64_t>(wanted), static_cast<void*>(objects.data()));
  while (made.size() > static_cast<std::size_t>(count)) made.pop_back();
  return made;
}

}  // namespace lamina::cudnn::graph
