#pragma once
// Every header of the core component, except lamina/cudnn_engines.h, which is included separately.

#include "lamina/api.h"
#include "lamina/backend.h"
#include "lamina/device.h"
#include "lamina/devices.h"
#include "lamina/error.h"
#include "lamina/gradient_check.h"
#include "lamina/graph.h"
#include "lamina/initialisers.h"
#include "lamina/new_file.h"
#include "lamina/op.h"
#include "lamina/optimiser.h"
#include "lamina/plan.h"
#include "lamina/random.h"
#include "lamina/shape.h"
#include "lamina/timing.h"
#include "lamina/weights.h"
