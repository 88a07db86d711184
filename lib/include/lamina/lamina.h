#pragma once
// Every header of every component, except lamina/cudnn_engines.h, which is included separately.

#include "lamina/communicator.h"
#include "lamina/core.h"
#include "lamina/data.h"
#include "lamina/nets.h"
#include "lamina/onnx.h"
#include "lamina/safetensors.h"
#include "lamina/statistics.h"
#include "lamina/synthetic.h"
#include "lamina/train.h"
#include "lamina/tuning.h"
#include "lamina/workloads.h"
