// From networks to units, and from units to distinct graphs.

#include "graphs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "bench/measure/session.h"
#include "lamina/cudnn_engines.h"
#include "lamina/error.h"
#include "lamina/near_names.h"

namespace lamina::bench {
namespace {

/// The number of the unit's query, which notes that the network has it.
std::size_t ask_once(std::vector<Query>& queries, const GraphRow& row, std::string graph, const std::string& network) {
  auto same = std::find_if(queries.begin(), queries.end(), [&](const Query& q) { return q.graph == graph; });
  if (same == queries.end()) same = queries.insert(same, {row.spec, row.pass, std::move(graph)});
  if (same->uses.empty() || same->uses.back()["network"] != network)
    same->uses.push_back({{"network", network}, {"unit", row.unit}, {"units", 0}});
  same->uses.back()["units"] = same->uses.back()["units"].get<int>() + 1;
  return static_cast<std::size_t>(same - queries.begin());
}

/// Adds to `known` the layers that a row can be of, wanted or not.
GraphTable table_of(const Config& c, const Graph& graph, const EnginesOptions& options, std::vector<Query>& queries,
                    std::set<std::string>& known) {
  GraphTable table{fmt::format("{}, batch {}, {}", c.network, c.batch, to_string(c.layout))};
  const auto name_of = [&](int node) { return graph.nodes()[static_cast<std::size_t>(node)].name; };
  const auto is_wanted = [&](int node) {
    return std::ranges::find(options.layers, name_of(node)) != options.layers.end();
  };
  std::vector<GraphRow> all;  // one for each pass of each unit, which all types have alike
  for (const DType dtype : options.configs.dtypes) {
    Options plan;
    plan.mode = options.plan.options.mode;
    plan.dtype = dtype;
    plan.layout = c.layout;
    plan.input_gradient = true;
    std::size_t at = 0;
    for (const PlannedUnit& unit : cudnn_graph_units(graph, plan)) {
      const bool wanted = options.layers.empty() || std::ranges::any_of(unit.nodes, is_wanted);
      for (const auto& [spec, pass] : cudnn_graphs(unit.spec)) try {
          std::string text = cudnn_graph(spec, pass);
          for (const int node : unit.nodes) known.insert(name_of(node));
          if (!wanted) continue;
          GraphRow row{name_of(unit.nodes.front()), spec, pass};
          const std::size_t number = ask_once(queries, row, std::move(text), c.network);
          if (at == all.size()) all.push_back(std::move(row));
          all[at++].queries.push_back(number);
        } catch (const Unsupported&) {
          if (wanted && !std::holds_alternative<Input>(unit.spec.op)) table.without.emplace(op_name(unit.spec.op));
        }
    }
  }
  for (GraphRow& row : all) {
    const auto same =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const GraphRow& r) { return r.queries == row.queries; });
    if (same == table.rows.end())
      table.rows.push_back(std::move(row));
    else
      ++same->units;
  }
  return table;
}

}  // namespace

std::string ops_text(const Spec& spec) {
  std::string text = to_string(spec.op);
  for (const Op& op : spec.tail) text += " + " + std::string(op_name(op));
  return text;
}

std::string pass_text(const Spec& spec, Pass pass) {
  return std::string(to_string(pass)) + (spec.masks_dx ? "+fused" : "");
}

Questions questions_of(const EnginesOptions& options) {
  Questions asked;
  std::set<std::string> known;
  for (const std::string& name : options.networks) {
    const Network its = network(name, options.net);
    for (const int batch : its.layer != nullptr ? std::vector{its.layer->x.n} : options.configs.batches)
      for (const Layout layout : options.configs.layouts) {
        const Config config{its.name, "", DType::f32, layout, batch};
        asked.tables.push_back(table_of(config, graph_of(config, options.net), options, asked.queries, known));
      }
  }
  for (const std::string& layer : options.layers)
    if (!known.contains(layer))
      throw UsageError(
          fmt::format("--layer: no layer \"{}\": {}", layer, near_names(layer, {known.begin(), known.end()})));
  return asked;
}

}  // namespace lamina::bench
