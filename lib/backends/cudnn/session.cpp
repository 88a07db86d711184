// A library, a device, and the handle that joins them.

#include "session.h"

#include <filesystem>
#include <mutex>

#include "lamina/error.h"

namespace lamina::cudnn {
namespace {

std::string canonical(const std::string& directory) {
  std::error_code error;
  const auto path = std::filesystem::canonical(directory, error);
  return error ? directory : path.string();
}

}  // namespace

const Api& Session::api() {
  if (api_ == nullptr) api_ = &open_();
  return *api_;
}

HandleObject* Session::handle() {
  if (handle_) return handle_->get();
  const Api& library = api();
  if (const std::string reason = machine_->unavailable(); !reason.empty()) throw DeviceError(reason);
  const Stream stream = machine_->stream();
  Handle made(library);
  LAMINA_CUDNN(library, SetStream, made.get(), stream);
  const ConvolutionDescriptor first(library);  // opens the part that has the convolutions
  check_one_directory(library);
  handle_.emplace(std::move(made));
  return handle_->get();
}

Blas& Session::blas() {
  const Api& library = api();
  const std::size_t cuda = library.GetCudartVersion == nullptr ? 0 : library.GetCudartVersion();
  return machine_->blas(static_cast<int>(cuda / 1000), library.directory);
}

const Api& process_library(const std::string& directory) {
  static std::mutex mutex;
  // Never closed: a backend may live until the process ends, and its handle goes with it.
  static Library* library = nullptr;
  static std::string asked;
  const std::lock_guard lock(mutex);
  if (library == nullptr) {
    library = new Library(directory);
    asked = directory;
  } else if (directory != asked && canonical(directory) != library->api().directory) {
    throw LoadError("this process uses cuDNN " + library->api().number() + " of " + library->api().directory +
                    ", and cannot use that of " + (directory.empty() ? "the system" : directory) +
                    " as well; start one process per version");
  }
  return library->api();
}

}  // namespace lamina::cudnn
