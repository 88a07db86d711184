#pragma once
// Descriptors of cuDNN's graph API: objects of many kinds that have attributes and are finalized before use. A Part is
// a descriptor as data and needs no library. A Descriptor is the library's object and is told the device.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lamina/error.h"
#include "lib/backends/cudnn/library/call.h"
#include "types.h"

namespace lamina::cudnn::graph {

struct Part;
using PartRef = std::shared_ptr<const Part>;

/// A descriptor before it is made: its attributes, in the order in which they are set. Parts may share parts.
struct Part {
  /// Numbers of a type, a text, or other parts. Fractions are whole numbers here, and handles are addresses.
  struct Value {
    Value(Type of, std::int64_t number) : type(of), numbers{number} {}
    Value(std::int64_t number) : type(type_int64), numbers{number} {}                    // NOLINT: as they are
    Value(std::vector<std::int64_t> all) : type(type_int64), numbers(std::move(all)) {}  // NOLINT
    Value(Type of, std::vector<std::int64_t> all) : type(of), numbers(std::move(all)) {}
    Value(PartRef part) : type(type_descriptor), parts{std::move(part)} {}  // NOLINT: an attribute is often a part
    Value(std::vector<PartRef> all) : type(type_descriptor), parts(std::move(all)) {}  // NOLINT
    Value(std::string all) : type(type_char), text(std::move(all)) {}                  // NOLINT
    Type type;
    std::vector<std::int64_t> numbers{};
    std::vector<PartRef> parts{};
    std::string text{};
  };
  Kind kind;
  std::vector<std::pair<int, Value>> attributes;
};
using Attributes = std::vector<std::pair<int, Part::Value>>;

inline PartRef part(Kind kind, Attributes attributes) {
  return std::make_shared<const Part>(Part{kind, std::move(attributes)});
}

/// The part in one line. Two parts of a graph have the same line exactly if they are equal.
std::string to_string(const Part&);

/// A descriptor of one kind, destroyed with its owner. Every member throws like LAMINA_CUDNN if a call fails.
class Descriptor : Owned<void, &Api::BackendCreateDescriptor, &Api::BackendDestroyDescriptor> {
 public:
  Descriptor(const Api& api, Kind kind) : Owned(api, "cudnnBackendCreateDescriptor", kind) {}

  void set(int attribute, Type, std::int64_t count, const void* elements);
  void set(int attribute, const std::vector<const Descriptor*>&);

  void finalize();

  using Owned::api;
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

/// A library and a device. The device is given by its handle or by its properties.
class Target {
 public:
  /// Throws UsageError if the library rejects the text, LoadError if it is too old or lacks a part to read the text.
  Target(const Api&, const std::string& json);
  Target(const Api&, HandleObject*);

  const Api& api() const { return api_; }
  HandleObject* handle() const { return handle_; }  ///< null if the device is absent
  /// The device's properties that a plan depends on. Empty for a device given by its handle if cuDNN is before 9.8.
  const std::string& properties() const { return properties_; }
  /// Tells a descriptor the device, if its kind has an attribute for it. cuDNN crashes on a plan without a device.
  void tell(Descriptor& to, Kind) const;

 private:
  const Api& api_;
  HandleObject* handle_ = nullptr;
  std::optional<Descriptor> made_;
  std::string properties_;
};

/// Makes and finalizes the descriptor of a part, after the descriptors of the parts in it.
Descriptor make(const Target&, const Part&);

/// Throws LoadError for a cuDNN that is too old for an absent device. Questions about such a device need 9.8, plans for
/// it (`makes_plans`) need 9.11. The constructor of a Target by properties demands 9.8.
void check_version(const Api&, bool makes_plans);

/// The result of make(). If the library refuses the call, the result is empty and `why` has the reason.
template <class Make>
std::optional<std::invoke_result_t<Make>> attempt(const Make& make, std::string& why) {
  try {
    return make();
  } catch (const DeviceError& error) {
    why = error.what();
  } catch (const Unsupported& error) {
    why = error.what();
  }
  return std::nullopt;
}

}  // namespace lamina::cudnn::graph
