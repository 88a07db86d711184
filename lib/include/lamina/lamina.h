#pragma once
// Everything at once.

#include "lamina/api.h"
#include "lamina/backend.h"
#include "lamina/choice_cache.h"
#include "lamina/cudnn_engines.h"
#include "lamina/device.h"
#include "lamina/devices.h"
#include "lamina/error.h"
#include "lamina/gradient_check.h"
#include "lamina/graph.h"
#include "lamina/nets.h"
#include "lamina/op.h"
#include "lamina/plan.h"
#include "lamina/random.h"
#include "lamina/shape.h"
#include "lamina/weights.h"
