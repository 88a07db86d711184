#pragma once
// Engines that the heuristics propose, queried through a table: the library's or a test's.

#include <string>
#include <vector>

#include "graph_descriptor.h"
#include "lamina/cudnn_engines.h"

namespace lamina::cudnn::graph {

/// Throws LoadError for a version before 9.8, which can only answer about a present device.
void check_version(const Api&);

/// The descriptor of a device's properties. Throws UsageError if the library rejects the text.
Descriptor make_device(const Api&, const std::string& json);

/// Implements CudnnEngines::list.
std::vector<CudnnEngine> list(const Api&, const Descriptor& device, const Conv&, const Shape& x, Layout, Pass);

}  // namespace lamina::cudnn::graph
