#pragma once
// The communicators over MPI, which a build may have, and over NCCL, which is opened at run time. No header of NCCL or
// CUDA is needed: a stream is declared as a pointer, and an enumerator as a number.

#include <cstddef>
#include <memory>
#include <string>

#include "lamina/communicator.h"

namespace lamina::communicator {

void check_sum(DType);  ///< throws UsageError for a type that start_all_reduce() does not take

std::unique_ptr<Communicator> make_mpi(const CommunicatorOptions&);  ///< only in a build with MPI

struct NcclId {
  char bytes[128];
};

/// The functions of NCCL that are called, by exported name. Every status is an int, where 0 is success.
struct NcclTable {
  using Handle = void*;

  int (*ncclGetUniqueId)(NcclId*) = nullptr;
  int (*ncclCommInitRank)(Handle*, int ranks, NcclId, int rank) = nullptr;  ///< call that waits for all ranks
  int (*ncclCommDestroy)(Handle) = nullptr;
  int (*ncclCommAbort)(Handle) = nullptr;
  int (*ncclCommGetAsyncError)(Handle, int* status) = nullptr;
  int (*ncclAllReduce)(const void* from, void* to, std::size_t count, int dtype, int op, Handle,
                       void* stream) = nullptr;
  const char* (*ncclGetErrorString)(int status) = nullptr;
};

/// The numbers of NCCL's enumerators. They are the same in all versions of libnccl.so.2.
namespace nccl_number {
constexpr int success = 0, float32 = 7, float64 = 8, sum = 0;
}  // namespace nccl_number

/// Opens libnccl.so.2 of a folder; without a folder, the loader finds it. The library stays open. Throws LoadError.
NcclTable open_nccl(const std::string& folder);

/// A communicator that sums device memory by NCCL and leaves everything else to `host`.
std::unique_ptr<Communicator> make_nccl(const NcclTable&, std::unique_ptr<Communicator> host,
                                        const CommunicatorOptions&);

}  // namespace lamina::communicator
