#pragma once
// A unit that is lowered on a fake cuDNN. Every tensor is in host memory, and recorded calls show its name.

#include <memory>
#include <string>
#include <vector>

#include "lib/core/units/unit_memory.h"
#include "tests/cudnn/fakes/host_machine.h"
#include "tests/support/cases/unit.h"

namespace lamina::test {

/// The tensors' names are x0, x1, ..., w0, dw0, state0, dx0, y, dy. The blocks' names are saved, scratch, prepared,
/// workspace. Unwanted tensors are null.
struct BoundUnit {
  /// Lowers and binds the unit, then clears the record of calls.
  BoundUnit(FakeBackend&, const Spec&, const Choice& = {});

  /// Runs the unit's steps for a pass, and returns their calls.
  std::vector<std::string> run(Pass);

  /// Memory for a tensor, as bind_unit requests it.
  Tensor tensor(Operand, std::size_t i, const TensorSpec&, std::int64_t pitch);
  void* block(Block, std::size_t bytes);

  Lowered lowered;
  Args args;

 private:
  void* lend(const std::string& name, std::size_t bytes);

  Fake& fake_;
  std::vector<std::unique_ptr<double[]>> memory_;
};

/// The elements of a tensor.
void put(FakeBackend&, const Tensor&, const std::vector<double>&);
std::vector<double> get(FakeBackend&, const Tensor&);

/// The spec of a case that the backend supports.
Spec spec_of(const FakeBackend&, const Case&, const Conditions& = {.dtype = DType::f32});

/// The algorithms of a unit's steps, by pass.
std::vector<std::string> taken(FakeBackend&, const Spec&, const Choice& = {});

/// Cases of each op. An op whose forms make different calls has a case for each form.
const std::vector<Case>& cases();

}  // namespace lamina::test
