#pragma once
// The parameters that a training starts with.

#include "lamina/train.h"

namespace lamina::training {

/// Fills every parameter by the initialisers of the options, and sets where the masks of dropout begin. Throws
/// UsageError for an unknown initialiser or parameter.
void fill_parameters(Plan&, const TrainerOptions&);

}  // namespace lamina::training
