// NCCL, opened at run time.

#include <dlfcn.h>

#include "lamina/error.h"
#include "lib/core/system/shared_library.h"
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
  const auto needs = [&](const char* name, auto*& entry) {
    resolve(library, name, entry);
    if (entry == nullptr) throw LoadError(path + " cannot be used as NCCL: it lacks " + name);
  };
  needs("ncclGetUniqueId", table.ncclGetUniqueId);
  needs("ncclCommInitRank", table.ncclCommInitRank);
  needs("ncclCommDestroy", table.ncclCommDestroy);
  needs("ncclCommAbort", table.ncclCommAbort);
  needs("ncclCommGetAsyncError", table.ncclCommGetAsyncError);
  needs("ncclAllReduce", table.ncclAllReduce);
  needs("ncclGetErrorString", table.ncclGetErrorString);
  return table;
}

}  // namespace lamina::communicator
