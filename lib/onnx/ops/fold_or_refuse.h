#pragma once
// Folding of a node whose inputs turned out to be constants while other nodes were imported, such as shapes.

#include "operators.h"

namespace lamina::onnx {

/// The node's result from its constant inputs; Refusal if one of them is computed by the network.
void fold_or_refuse(NodeContext&);

}  // namespace lamina::onnx
