// Every row there is.

#include "rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "bench/measure/rerun.h"
#include "lamina/error.h"

namespace lamina::bench {

std::vector<Row> rows_of(Group group, const std::function<RowKey(std::string_view part)>& key) {
  const auto shared = std::make_shared<const Group>(std::move(group));
  std::vector<Row> rows;
  for (std::size_t part = 0; part < shared->parts.size(); ++part) {
    RowKey of_part = key(shared->parts[part]);
    std::string name = to_string(of_part);
    rows.push_back({std::move(name), shared, part, std::move(of_part)});
  }
  return rows;
}

std::string rerun_of(const Row& row, const RunOptions& options) {
  std::vector<std::string> more = passes_flag(options.passes);
  if (row.key.what == "layer" && options.cold) more.emplace_back("--cold");
  if (row.key.what == "net" && options.cuda_graph) more.emplace_back("--cuda_graph");
  return rerun_row(row.name, row.group->config, options, more);
}

std::vector<Row> all_rows(Session& session, const RunOptions& options, std::string* left_out) {
  std::vector<Network> all;
  for (const std::string& name : options.networks) all.push_back(network(name, options.net));
  const bool named = !all.empty();
  if (!named || !options.net.onnx.empty()) std::ranges::copy(networks(options.net), std::back_inserter(all));
  std::set<std::string> reasons;
  const auto leave_out = [&](const std::string& name, const ShapeError& error) {
    if (named) throw ShapeError(name + ": " + error.what());
    reasons.insert(fmt::format("{} ({})", name, error.what()));
  };
  const int largest = std::ranges::max(options.configs.batches);
  std::erase_if(all, [&](const Network& each) {
    if (options.net.image != 0 && options.net.image < each.smallest_image) {
      reasons.insert(fmt::format("{} ({} or more)", each.name, each.smallest_image));
      return true;
    }
    try {
      session.plans.graph({each.name, "", DType::f32, Layout::nchw, largest});
    } catch (const ShapeError& error) {
      leave_out(each.name, error);
      return true;
    }
    return false;
  });
  std::vector<Row> rows;
  const auto add = [&](std::vector<Row> more) {
    for (Row& row : more) {
      row.rerun = rerun_of(row, options);
      rows.push_back(std::move(row));
    }
  };
  const auto for_each_config = [&](auto&& make_rows) {
    for (const std::string& backend : session.backends.names())
      for (const Network& info : all)
        for (const DType dtype : options.configs.dtypes)
          for (const Layout layout : options.configs.layouts)
            for (const int batch : options.configs.batches) try {
                add(make_rows(session, options, {info.name, backend, dtype, layout, batch}));
              } catch (const ShapeError& error) {
                leave_out(info.name, error);
              }
  };
  const bool alone = options.net.ranks == 1;
  for_each_config(net_rows);
  if (alone) for_each_config(layer_rows);
  if (left_out != nullptr && !reasons.empty())
    *left_out = fmt::format("Left out at this --image and --batch: {}", fmt::join(reasons, ", "));
  if (left_out != nullptr && !alone)
    left_out->append(left_out->empty() ? "" : "; ")
        .append("several ranks run rows net/.../forward, backward and total; start others without mpirun");
  return rows;
}
}  // namespace lamina::bench
