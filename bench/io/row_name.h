#pragma once
// The name of a row.

#include <nlohmann/json.hpp>
#include <string>

namespace lamina::bench {

/// "layer/resnet50/conv1/forward/eigen/default/f32/nchw/batch:16/recompute": the name of a row with these fields of a
/// key (bench/measure/row_key.h).
std::string row_name(const nlohmann::ordered_json& key);

}  // namespace lamina::bench
