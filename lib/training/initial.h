#pragma once
// The parameters at the start of a training.

#include "lamina/train.h"

namespace lamina::training {

/// Fills every parameter by the initialisers of the options, and sets the first step of every dropout. Throws
/// UsageError for an unknown initialiser or parameter.
void fill_parameters(Plan&, const TrainerOptions&);

}  // namespace lamina::training
