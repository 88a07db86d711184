#pragma once
// The cases that reach every kernel that an op launches.

#include <vector>

#include "tests/support/cases/unit.h"

namespace lamina::test {

/// Cases that are small, and odd at every edge; larger cases only if a kernel needs them. By every algorithm, in both
/// types, they launch every kernel except tiles that are too large for them (tests/kernels). To reach a new kernel, add
/// the smallest case that runs it.
std::vector<Case> kernel_cases();

}  // namespace lamina::test
