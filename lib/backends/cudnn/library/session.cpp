// A library, a device, and the handle that joins them.

#include "session.h"

#include <mutex>

#include "lamina/error.h"

namespace lamina::cudnn {
namespace {

std::string named(const std::string& directory) { return directory.empty() ? "the system" : directory; }

[[noreturn]] void refuse_second(const std::string& first, const std::string& second) {
  throw LoadError("this process " + first + ", and cannot use the one of " + named(second) +
                  " as well; start one process per version");
}

/// The choice of a cuDNN for this process.
struct Process {
  std::mutex mutex;
  // Never closed: a backend may live until the process ends, and its handle with it.
  Library* library = nullptr;
  std::string asked;    ///< the directory requested for the library
  std::string claimed;  ///< canonical directory of all claims; empty: the system's
  int claims = 0;

  void check(const std::string& directory) const {
    if (library == nullptr || directory == asked || canonical(directory) == library->api().directory) return;
    refuse_second("uses cuDNN " + library->api().number() + " of " + library->api().directory, directory);
  }
};

Process& this_process() {
  static Process* const process = new Process;  // never deleted: backends may live until the process ends
  return *process;
}

/// The major version of the CUDA that the library was built with; 0 if unknown.
int cuda_major(const Api& library) {
  return library.GetCudartVersion == nullptr ? 0 : static_cast<int>(library.GetCudartVersion() / 1000);
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
  Stream stream = machine_->stream();
  Handle made(library);
  LAMINA_CUDNN(library, SetStream, made.get(), stream);
  const ConvolutionDescriptor first(library);  // opens the part with the convolutions
  check_one_directory(library);
  handle_.emplace(std::move(made));
  return handle_->get();
}

Blas& Session::blas() {
  const Api& library = api();
  return machine_->blas(cuda_major(library), library.directory);
}

std::string Session::describe_blas() {
  const Api& library = api();
  return machine_->describe_blas(cuda_major(library), library.directory);
}

void Session::check_parts(Use use) {
  bool& checked = checked_[static_cast<std::size_t>(use)];
  if (checked) return;
  check_one_directory(api());
  checked = true;
}

Claim::Claim(const std::string& directory) {
  Process& process = this_process();
  const std::lock_guard lock(process.mutex);
  process.check(directory);
  if (process.claims == 0) process.claimed = canonical(directory);
  if (process.claims > 0 && process.library == nullptr && canonical(directory) != process.claimed)
    refuse_second("is to use the cuDNN of " + named(process.claimed), directory);
  ++process.claims;
}

Claim::~Claim() {
  const std::lock_guard lock(this_process().mutex);
  --this_process().claims;
}

const Api& process_library(const std::string& directory) {
  Process& process = this_process();
  const std::lock_guard lock(process.mutex);
  process.check(directory);
  if (process.library == nullptr) {
    process.library = new Library(directory);
    process.asked = directory;
  }
  return process.library->api();
}

}  // namespace lamina::cudnn
