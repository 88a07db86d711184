#pragma once
// Four bottleneck blocks of ResNet-50's first stage: a probe of the commonest part of the tables' networks.

#include "lamina/graph.h"

namespace lamina::bench {

/// On `batch` images of 64 x 56 x 56: 1x1 to 64, 3x3, 1x1 to 256, added to the shortcut; the first block projects.
/// Node names are those of torch_nets' bottleneck_stack.
Graph bottleneck_stack(int batch);

}  // namespace lamina::bench
