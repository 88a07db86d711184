#pragma once
// The backend that this process tests, and the one it is tested against.

#include <memory>
#include <string>
#include <vector>

#include "lamina/backend.h"
#include "lamina/plan.h"

namespace lamina::test {

/// The name of the backend that LAMINA_TEST_BACKEND names, or `otherwise` where that is unset. "cudnn" becomes
/// "cudnn:<directory>" where LAMINA_TEST_CUDNN has the directory.
std::string tested_backend(const std::string& otherwise);

/// As lamina::make_backend. Also makes "cuda-host-closed": cuda-host on a device whose memory the host cannot touch.
std::shared_ptr<Backend> make_named(const std::string& name, const BackendOptions& = {});

/// Likewise; where the backend cannot run, the process says why and ends: see support/skip.h.
std::shared_ptr<Backend> make_or_skip(const std::string& name, const BackendOptions& = {});

/// The tested backend, "eigen" where none is named. One process tests one backend, so that ctest runs the same binary
/// once per backend.
Backend& backend();

/// The same on one thread: for differences, thousands of passes so small that handing work out would be all they do.
Backend& one_thread();

/// Eigen, which in f64 by its `direct` algorithms is the oracle: hand examples and differences pin it.
Backend& oracle();

/// The algorithm `direct` for all passes.
Choice direct();

/// What the backend under test lists for a pass of the unit. Of cudnn, whose library alone can tell: those that it
/// takes, less the transforms, whose error nobody bounds.
std::vector<std::string> algorithms(const Spec&, Pass);

/// Whether the backend under test refuses the unit.
bool refused(const Spec&);

/// Whether it refuses a unit of the graph.
bool refused(const Graph&, const Options&);

/// Whether its library, and not the backend, decides over units and algorithms: then a refusal is no failure.
bool decided_by_library();

/// Whether an algorithm is one of cudnn's transforms.
bool is_unbounded(const std::string& algorithm);

/// The element types that every backend computes in.
std::vector<DType> element_types();

}  // namespace lamina::test
