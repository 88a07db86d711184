// NCCL, opened at run time.

#include <dlfcn.h>

#include "lamina/error.h"
#include "nccl_communicator.h"

namespace lamina::communicator {

NcclTable open_nccl(const std::string& folder) {
  const std::string path = folder.empty() ? "libnccl.so.2" : folder + "/libnccl.so.2";
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = dlerror();
    throw LoadError(
        "no NCCL could be opened; install NCCL (Debian and Ubuntu: libnccl2), or give nccl_folder\ntried:\n  " +
        (why == nullptr ? path : std::string(why)));
  }
  NcclTable table;
  const auto resolve = [&]<class Function>(const char* name, Function*& entry) {
    entry = reinterpret_cast<Function*>(dlsym(library, name));
    if (entry == nullptr) throw LoadError(path + " cannot be used as NCCL: it lacks " + name);
  };
  resolve("ncclGetUniqueId", table.ncclGetUniqueId);
  resolve("ncclCommInitRank", table.ncclCommInitRank);
  resolve("ncclCommDestroy", table.ncclCommDestroy);
  resolve("ncclCommAbort", table.ncclCommAbort);
  resolve("ncclCommGetAsyncError", table.ncclCommGetAsyncError);
  resolve("ncclAllReduce", table.ncclAllReduce);
  resolve("ncclGetErrorString", table.ncclGetErrorString);
  return table;
}

}  // namespace lamina::communicator
