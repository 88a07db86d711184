#pragma once
// Engines that the heuristics propose, asked for through a table: the library's or a test's.

#include <string>
#include <vector>

#include "graph_descriptor.h"
#include "lamina/cudnn_engines.h"

namespace lamina::cudnn::graph {

/// Throws LoadError for a version before 9.8, which can only be asked about a device that is there.
void check_version(const Api&);

/// The descriptor of a device's properties. Throws UsageError where the library does not take the text.
Descriptor make_device(const Api&, const std::string& json);

/// CudnnEngines::list.
std::vector<CudnnEngine> list(const Api&, const Descriptor& device, const Conv&, const Shape& x, Layout, Pass);

}  // namespace lamina::cudnn::graph
