#pragma once
// The names of rows: paths of facts that are the same on every machine, with the optional parts behind them only where
// they differ from the default. And the filter that picks from them.

#include <string>
#include <string_view>
#include <vector>

#include "lamina/nets.h"
#include "options/options.h"

namespace lamina::bench {

/// What all rows of one network on one backend have in common.
struct Case {
  std::string network;
  std::string backend;
  DType dtype = DType::f32;
  Layout layout = Layout::nchw;
  int batch = 16;
};

/// The protocol of a network: as published, but for what the user set.
nets::Protocol protocol_of(const Case&, const BenchOptions&);

/// "net/resnet50/total/eigen/f32/nchw/batch:16"
std::string net_name(const Case&, std::string_view part, const BenchOptions&);

/// "layer/resnet50/layer1.0.conv1/forward/eigen/direct/f32/nchw/batch:16"
std::string layer_name(const Case&, std::string_view node, std::string_view pass, std::string_view algorithm,
                       const BenchOptions&);

/// "setup/resnet50/plan/eigen/f32/nchw/batch:16"
std::string setup_name(const Case&, std::string_view part, const BenchOptions&);

/// By name, which of the rows the expression (as std::regex reads it, found anywhere in the name) picks.
/// Throws UsageError for a bad expression, and for one that picks nothing, with the nearest names and then `left_out`.
std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter,
                       const std::string& left_out = {});

/// A line on the networks that have no rows because --image is too small for them, with the least they take; or
/// nothing.
std::string too_small_for(const BenchOptions&);

/// The expression of the rows that are run when none is given: the ten networks of cnn-benchmarks, or three of them.
std::string default_filter(bool quick);

}  // namespace lamina::bench
