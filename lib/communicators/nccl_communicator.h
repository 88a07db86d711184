#pragma once
// Ranks whose GPUs add up their memory by NCCL, opened at run time. No header of NCCL or CUDA is needed: a stream is a
// pointer, an enumerator its number.

#include <cstddef>
#include <memory>
#include <string>

#include "lamina/communicator.h"

namespace lamina::communicator {

struct NcclId {
  char bytes[128];
};

/// The functions of NCCL that are called, by exported name. Every status is an int, 0 is success.
struct NcclTable {
  using Handle = void*;

  int (*ncclGetUniqueId)(NcclId*) = nullptr;
  int (*ncclCommInitRank)(Handle*, int ranks, NcclId, int rank) = nullptr;  ///< waits for all ranks
  int (*ncclCommDestroy)(Handle) = nullptr;
  int (*ncclCommAbort)(Handle) = nullptr;
  int (*ncclCommGetAsyncError)(Handle, int* status) = nullptr;
  int (*ncclAllReduce)(const void* from, void* to, std::size_t count, int dtype, int op, Handle,
                       void* stream) = nullptr;
  const char* (*ncclGetErrorString)(int status) = nullptr;
};

/// The numbers of NCCL's enumerators, the same in all versions of libnccl.so.2.
namespace nccl_number {
constexpr int success = 0, float32 = 7, float64 = 8, sum = 0;
}  // namespace nccl_number

/// Opens libnccl.so.2 of a folder or, without one, of the loader. It stays open. Throws LoadError.
NcclTable open_nccl(const std::string& folder);

/// Sums of device memory by NCCL, all else by `host`.
std::unique_ptr<Communicator> make_nccl(const NcclTable&, std::unique_ptr<Communicator> host,
                                        const CommunicatorOptions&);

}  // namespace lamina::communicator
