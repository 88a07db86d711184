#pragma once
// Library calls that throw on failure, owners of the library's objects, and the meaning of a status in every version:
// version 9 renumbered the statuses. Beyond these meanings only the library's own text is reliable.

#include <cstdint>
#include <memory>
#include <string>

#include "api.h"

namespace lamina::cudnn {

enum class Meaning : std::uint8_t { bad_parameter, not_supported, no_memory, other };

/// The meaning of a status in the library's major version.
Meaning meaning(const Api&, Status);

/// "CUDNN_STATUS_BAD_PARAM (2000)".
std::string name(const Api&, Status);

/// The name of the last call's status and, if the library has it (9), ": " and the text of its last error.
std::string text(const Api&, Status);

/// Whether the library refused the call: nothing was enqueued, and another algorithm may work.
bool refused(const Api&, Status);

/// Throws unless the status is success: Unsupported if the library cannot do this, OutOfMemory if it has no memory,
/// else DeviceError. The message has the call, the status by name and number, the library's own text, the version, file
/// and line.
void check(const Api&, Status, const char* call, const char* file, int line);

/// Throws LoadError: the version lacks this entry point.
[[noreturn]] void missing(const Api&, const char* name);

/// The entry point, which must exist.
template <class Function>
Function* need(const Api& api, Function* entry, const char* name) {
  if (entry == nullptr) missing(api, name);
  return entry;
}

/// LAMINA_CUDNN(api, SetStream, handle, stream): api.SetStream(handle, stream), checked.
#define LAMINA_CUDNN(api, name, ...)                                                                                 \
  ::lamina::cudnn::check((api), ::lamina::cudnn::need((api), (api).name, "cudnn" #name)(__VA_ARGS__), "cudnn" #name, \
                         __FILE__, __LINE__)

/// An object of the library: created on construction, destroyed once, moved, never copied.
template <class Object, auto Create, auto Destroy>
class Owned {
 public:
  /// `first`: arguments of the library's create function that come before the object.
  template <class... First>
  Owned(const Api& api, const char* create, First... first) : object_(make(api, create, first...), Deleter{&api}) {}
  Object* get() const { return object_.get(); }
  const Api& api() const { return *object_.get_deleter().api; }

 private:
  struct Deleter {
    const Api* api;
    void operator()(Object* object) const noexcept {
      if (api->*Destroy != nullptr) (api->*Destroy)(object);
    }
  };
  template <class... First>
  static Object* make(const Api& api, const char* create, First... first) {
    Object* object = nullptr;
    check(api, need(api, api.*Create, create)(first..., &object), create, __FILE__, __LINE__);
    return object;
  }
  std::unique_ptr<Object, Deleter> object_;
};

// NOLINTBEGIN(bugprone-macro-parentheses): the name of a class takes none
/// The class `name`: the owner of an object of cudnnCreate##what.
#define LAMINA_CUDNN_OWNER(name, object, what)                                 \
  class name : public Owned<object, &Api::Create##what, &Api::Destroy##what> { \
   public:                                                                     \
    explicit name(const Api& api) : Owned(api, "cudnnCreate" #what) {}         \
  }
// NOLINTEND(bugprone-macro-parentheses)

LAMINA_CUDNN_OWNER(Handle, HandleObject, );
LAMINA_CUDNN_OWNER(TensorDescriptor, TensorObject, TensorDescriptor);
LAMINA_CUDNN_OWNER(FilterDescriptor, FilterObject, FilterDescriptor);
LAMINA_CUDNN_OWNER(ConvolutionDescriptor, ConvolutionObject, ConvolutionDescriptor);
LAMINA_CUDNN_OWNER(ActivationDescriptor, ActivationObject, ActivationDescriptor);
LAMINA_CUDNN_OWNER(PoolingDescriptor, PoolingObject, PoolingDescriptor);
LAMINA_CUDNN_OWNER(LrnDescriptor, LrnObject, LRNDescriptor);
LAMINA_CUDNN_OWNER(OpTensorDescriptor, OpTensorObject, OpTensorDescriptor);
LAMINA_CUDNN_OWNER(DropoutDescriptor, DropoutObject, DropoutDescriptor);
LAMINA_CUDNN_OWNER(RnnDescriptor, RnnObject, RNNDescriptor);
LAMINA_CUDNN_OWNER(RnnDataDescriptor, RnnDataObject, RNNDataDescriptor);
#undef LAMINA_CUDNN_OWNER

}  // namespace lamina::cudnn
