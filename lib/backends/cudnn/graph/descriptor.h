#pragma once
// Descriptors of cuDNN's graph API: objects of many kinds that have attributes and are finalized before use.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lib/backends/cudnn/library/call.h"
#include "types.h"

namespace lamina::cudnn::graph {

/// A descriptor of one kind, destroyed with its owner. Every member throws like LAMINA_CUDNN if a call fails.
class Descriptor : Owned<void, &Api::BackendCreateDescriptor, &Api::BackendDestroyDescriptor> {
 public:
  Descriptor(const Api& api, Kind kind) : Owned(api, "cudnnBackendCreateDescriptor", kind) {}

  void set(int attribute, Type, std::int64_t count, const void* elements);
  void set(int attribute, std::span<const std::int64_t>);
  void set(int attribute, const std::vector<const Descriptor*>&);

  void finalize();

  void* object() const { return get(); }
  std::int64_t int64(Attribute) const;
  std::string text(Attribute) const;
  /// Enumerators, `room` at most.
  std::vector<int> enumerators(Attribute, Type, std::size_t room) const;
  /// The descriptors of `kind` that the attribute holds; at most `room`, unless `room` is 0.
  std::vector<Descriptor> descriptors(Attribute, Kind, std::size_t room = 0) const;

 private:
  std::int64_t read(Attribute, Type, std::int64_t room, void* elements) const;
};

}  // namespace lamina::cudnn::graph
