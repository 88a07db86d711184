#pragma once
// The backend under test, and the reference backend.

#include <memory>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/plan.h"

namespace lamina::test {

/// The name of the backend in LAMINA_TEST_BACKEND, or `otherwise` if this variable is unset. If LAMINA_TEST_CUDNN is a
/// directory, "cudnn" becomes "cudnn:<directory>" (or "cudnn-graph:<directory>").
std::string tested_backend(const std::string& otherwise);

/// Like lamina::make_backend. Also makes "cuda-host-closed" (cuda-host on a device whose memory the host cannot access)
/// and "eigen:<set>" (eigen with an instruction set).
std::shared_ptr<Backend> make_named(const std::string& name, const BackendOptions& = {});

/// Like make_named(). If the backend cannot run, the process prints the reason and ends: see support/skip.h.
std::shared_ptr<Backend> make_or_skip(const std::string& name, const BackendOptions& = {});

/// The backend of LAMINA_TEST_BACKEND, or else all backends that run on every machine: eigen, and cuda-host on memory
/// that the host cannot access.
std::vector<std::shared_ptr<Backend>> tested_backends();

/// The tested backend, "eigen" by default. One process tests one backend, so that ctest runs the same binary
/// once per backend.
Backend& backend();

/// The backend under test on one thread, for finite differences, whose thousands of passes are too small for several
/// threads.
Backend& one_thread();

/// The backend eigen. In f64 with its `direct` algorithms it is the oracle, which examples by hand and differences
/// check.
Backend& oracle();

/// The algorithm `direct` for all passes.
Choice direct();

/// The algorithms that the backend under test lists for a pass of the unit. For cudnn, the algorithms that the library
/// accepts, without transforms, because their error has no bound.
std::vector<std::string> algorithms(const Spec&, Pass);

/// Whether the backend under test refuses the unit.
bool refused(const Spec&);

/// Whether the backend under test refuses a unit of the graph.
bool refused(const Graph&, const Options&);

/// Whether a library decides which units and algorithms the tested backend runs. Then a refusal is no failure.
bool decided_by_library();

/// Whether an algorithm is one of cudnn's transforms.
bool is_unbounded(const std::string& algorithm);

/// The element types that every backend computes in.
std::vector<DType> element_types();

/// The 16-bit types of values that the suite tests on the backend under test; none on cudnn.
std::vector<DType> half_types();

}  // namespace lamina::test
