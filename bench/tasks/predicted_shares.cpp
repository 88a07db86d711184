// Predicted shares of the peak. docs/kernels.md has the formula.

#include "predicted_shares.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>
#include <variant>

#include "bench/measure/layers.h"
#include "bench/measure/networks.h"

namespace lamina::bench {
namespace {

constexpr int batch = 16;
constexpr std::int64_t small_plane = 14 * 14;  // the places of kernel_rates()
constexpr std::array passes = {Pass::forward, Pass::backward_params, Pass::backward_data};

std::int64_t taps(const Conv& op) { return std::int64_t{op.kernel.h} * op.kernel.w; }
bool strided(const Conv& op) { return op.stride.h * op.stride.w > 1; }

/// Whether the columns are the image itself.
bool whole(const Conv& op) { return taps(op) == 1 && !strided(op) && op.pad == Size(0); }

/// Rows that are multiplied: the last tile has all its rows or half of them.
std::int64_t multiplied(std::int64_t rows, std::int64_t tile) {
  const std::int64_t left = rows % tile;
  return left == 0 ? rows : rows - left + (left <= tile / 2 ? tile / 2 : tile);
}

/// Elements that a pass packs: the columns of x or dy. For the weights' gradient one side is transposed, and the other
/// one is copied unless it is the image itself.
std::int64_t packed(const Conv& op, const Shape& x, const Shape& y, Pass pass) {
  const std::int64_t pixels = y.n * y.plane();
  switch (pass) {
    case Pass::forward: return x.c * taps(op) * pixels;
    case Pass::backward_data: return y.c * taps(op) * pixels;
    default: return whole(op) ? std::min(x.c, y.c) * pixels : (x.c * taps(op) + y.c) * pixels;
  }
}

struct PredictedLayer {
  std::string name;
  Conv op;
  Shape x, y;
  bool wants_dx;  // that of an image has other algorithms
  int count = 1;
};

/// The distinct 1x1 and strided convolutions.
std::vector<PredictedLayer> lines_of(const std::vector<std::string>& networks) {
  std::vector<PredictedLayer> lines;
  for (const std::string& name : networks) {
    const Graph graph = graph_of({name, "", DType::f32, Layout::nchw, batch}, {});
    for (const DistinctLayer& layer : distinct_layers(graph)) {
      const Node& node = layer.first();
      const Conv* const op = std::get_if<Conv>(&node.op);
      if (op == nullptr || (taps(*op) > 1 && !strided(*op))) continue;
      const Node& before = graph.nodes()[static_cast<std::size_t>(node.inputs.front())];
      const Shape x = before.shape;
      const auto same =
          std::ranges::find_if(lines, [&](const PredictedLayer& other) { return other.op == *op && other.x == x; });
      if (same != lines.end())
        same->count += layer.count();
      else
        lines.push_back({name + "/" + node.name, *op, x, node.shape, !before.inputs.empty(), layer.count()});
    }
  }
  return lines;
}

std::string percent(double share) { return fmt::format("{:.1f}", 100 * share); }

/// Of several layers' passes.
struct Sum {
  PredictedPass passes;
  double hidden = 0;  // seconds, with each pass's shorter part hidden

  void add(const PredictedPass& one, int times) {
    passes.flops += times * one.flops;
    passes.multiply += times * one.multiply;
    passes.move += times * one.move;
    hidden += times * std::max(one.multiply, one.move);
  }
  std::string share(double peak) const { return passes.flops > 0 ? percent(passes.share(peak)) + " %" : "none"; }
};

}  // namespace

std::optional<ProductRates> product_rates(const std::vector<KernelRate>& all, double bytes_per_second) {
  if (all.empty()) return {};
  const KernelRate& registers = all.front();
  // The first of a place is the tile of convolutions by products.
  const auto at = [&](const char* place) {
    return std::ranges::find_if(all, [&](const KernelRate& rate) {
      return rate.instruction_set == registers.instruction_set && rate.operands == place;
    });
  };
  const auto block = at("packed, block"), small = at("planes of 14x14, L2"), large = at("planes of 56x56, L3");
  if (block == all.end() || small == all.end() || large == all.end()) return {};
  const double peak = registers.flops_per_second;
  ProductRates rates{registers.instruction_set, block->tile.rows, peak,
                     peak * block->flops_per_second / block->peak_flops_per_second};
  rates.bytes_per_second = bytes_per_second;
  // Blocks in place are prefetched, or left to the hardware where that is faster.
  const auto in_place = [&](const KernelRate& rate) {
    return peak * std::max(rate.flops_per_second, rate.prefetched_flops_per_second) / rate.peak_flops_per_second;
  };
  constexpr int line = 16;  // elements; with narrower vectors all columns are packed
  if (block->tile.lanes == line) {
    rates.small_planes = in_place(*small);
    rates.large_planes = in_place(*large);
  }
  return rates;
}

double PredictedPass::share(double peak) const { return flops / peak / (multiply + move); }

PredictedPass predict(const Conv& op, const Shape& x, const Shape& y, Pass pass, const ProductRates& rates) {
  const Cost least = cost(op, {x}, pass, DType::f32);
  const bool in_place = whole(op) && rates.small_planes > 0 && pass != Pass::backward_params;
  const double rate = !in_place ? rates.packed : x.plane() <= small_plane ? rates.small_planes : rates.large_planes;
  const std::int64_t rows = pass == Pass::forward         ? y.c / op.groups
                            : pass == Pass::backward_data ? x.c / op.groups
                                                          : x.c / op.groups * taps(op);
  const double edges = static_cast<double>(multiplied(rows, rates.tile_rows)) / static_cast<double>(rows);
  const double packing = in_place ? 0 : sizeof(float) * static_cast<double>(packed(op, x, y, pass));
  return {least.flops, least.flops * edges / rate, (least.bytes + packing) / rates.bytes_per_second};
}

std::string predicted_shares(const std::vector<std::string>& networks, const ProductRates& rates, Format format) {
  TextTable table;
  table.columns = {{"layer"}, {"op"}, {"x"}, {"layers", true}};
  for (const char* name : {"forward ms", "forward %", "dw ms", "dw %", "dx ms", "dx %"})
    table.columns.push_back({name, true});
  std::array<Sum, passes.size()> sums{};
  Sum all;
  for (const PredictedLayer& line : lines_of(networks)) {
    std::vector<std::string> cells = {line.name, to_string(Op(line.op)), to_string(line.x),
                                      fmt::format("{}", line.count)};
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (passes[i] == Pass::backward_data && !line.wants_dx) {
        cells.insert(cells.end(), {"", ""});
        continue;
      }
      const PredictedPass one = predict(line.op, line.x, line.y, passes[i], rates);
      cells.push_back(fmt::format("{:.2f}", 1e3 * (one.multiply + one.move)));
      cells.push_back(percent(one.share(rates.peak)));
      for (Sum* sum : {&sums[i], &all}) sum->add(one, line.count);
    }
    table.rows.push_back(std::move(cells));
  }
  if (format == Format::csv) return table.csv();
  if (table.rows.empty()) return "No 1x1 or strided convolutions.\n";
  return table.text() +
         fmt::format(
             "\nPredicted for a core of this machine with {}, batch {}, f32: {:.1f} GFLOP/s in registers, {} % of them "
             "from a packed\nblock, {:.1f} GB/s of memory. Of the peak, weighted by time: forward {}, dw {}, dx {}, "
             "together {}; {} % if the\nshorter of arithmetic and memory were hidden behind the longer one. "
             "docs/kernels.md has the formula.\n",
             rates.instruction_set, batch, 1e-9 * rates.peak, percent(rates.packed / rates.peak),
             1e-9 * rates.bytes_per_second, sums[0].share(rates.peak), sums[1].share(rates.peak),
             sums[2].share(rates.peak), all.share(rates.peak), percent(all.passes.flops / rates.peak / all.hidden));
}

}  // namespace lamina::bench
