#pragma once
// The communicator that a build with MPI has.

#include <memory>

#include "lamina/communicator.h"

namespace lamina::communicator {

std::unique_ptr<Communicator> make_mpi(const CommunicatorOptions&);

void check_sum(DType);  ///< throws UsageError for a type that start_all_reduce() does not take

}  // namespace lamina::communicator
