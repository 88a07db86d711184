#pragma once
// The names of rows: paths of facts that are the same on every machine, and after them the optional parts that differ
// from the default. And the filter that picks from them.

#include <string>
#include <string_view>
#include <vector>

#include "bench/measure/row_key.h"
#include "options.h"

namespace lamina::bench {

/// "net/resnet50/total/eigen/f32/nchw/batch:16"
RowKey net_key(const Config&, std::string_view part, const RunOptions&);
/// "layer/resnet50/layer1.0.conv1/forward/eigen/direct/f32/nchw/batch:16"
RowKey layer_key(const Config&, std::string_view node, std::string_view pass, std::string_view algorithm,
                 const RunOptions&);

/// By name, which of the rows the expression (as std::regex reads it, found anywhere in the name) picks; after a "-",
/// the others; "all": each. Throws UsageError for a bad expression, for one that picks nothing, with the nearest names
/// and then `left_out`, and where there are no rows.
std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter,
                       const std::string& left_out = {});

/// The networks that are run when neither a name nor a filter is given: the ten of cnn-benchmarks, or three of them.
std::vector<std::string> default_networks(bool quick);
/// The expression of the rows that are run, or listed, when none is given.
std::string default_filter(const RunOptions&);

}  // namespace lamina::bench
