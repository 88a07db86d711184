// Rows: what the user asked for, the measurements that feed them, and the filter that picks from their names.

#include "rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <regex>
#include <set>
#include <utility>

#include "bench/measure/row_key.h"
#include "lamina/error.h"
#include "lamina/near_names.h"

namespace lamina::bench {
namespace {

std::string nearest(const std::vector<std::string>& names, const std::string& filter) {
  std::string plain = filter;  // without what only an expression means
  std::erase_if(plain, [](char c) { return std::string_view("^$()[]*+?\\").find(c) != std::string_view::npos; });
  std::vector<std::pair<std::size_t, const std::string*>> ranked;
  for (const std::string& name : names) ranked.emplace_back(edit_distance(plain, name, Match::part), &name);
  const std::size_t shown = std::min<std::size_t>(ranked.size(), 5);
  std::partial_sort(ranked.begin(), ranked.begin() + static_cast<std::ptrdiff_t>(shown), ranked.end(),
                    [](const auto& a, const auto& b) { return a.first < b.first; });
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) text += "\n  " + *ranked[i].second;
  return text;
}

}  // namespace

std::vector<bool> pick(const std::vector<std::string>& names, const std::string& filter, const std::string& left_out) {
  constexpr std::size_t longest = 4096;  // std::regex uses the stack for each character
  if (names.empty()) throw UsageError("there are no rows: " + left_out);
  if (filter.size() > longest)
    throw UsageError(
        fmt::format("--benchmark_filter has {} characters, and may have {}; run parts of it one after another",
                    filter.size(), longest));
  const bool negative = filter.starts_with('-');
  std::vector<bool> picked(names.size(), filter == "all");
  try {
    const std::regex expression(filter.substr(negative ? 1 : 0));
    for (std::size_t i = 0; i < names.size(); ++i)
      picked[i] = picked[i] || std::regex_search(names[i], expression) != negative;
  } catch (const std::regex_error& error) {
    throw UsageError(fmt::format("--benchmark_filter \"{}\" is not a regular expression: {}", filter, error.what()));
  }
  if (std::find(picked.begin(), picked.end(), true) == picked.end())
    throw UsageError(fmt::format(
        "--benchmark_filter \"{}\" matches none of {} rows; the nearest are{}\n--benchmark_list_tests prints all{}{}",
        filter, names.size(), nearest(names, filter), left_out.empty() ? "" : "; ", left_out));
  return picked;
}

std::vector<std::string> default_networks(bool quick) {
  if (quick) return {"alexnet", "resnet18", "resnet50"};
  return {"alexnet",  "inception_v1", "vgg16",     "vgg19",     "resnet18",
          "resnet34", "resnet50",     "resnet101", "resnet152", "resnet200"};
}

std::string default_filter(const RunOptions& options) {
  if (options.list) return "all";
  return options.net.onnx.empty() ? "^net/.*/(forward|backward|total)/" : "^net/.*/(forward|backward|total|inference)/";
}

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
  return rerun_row(row.name, row.group->config, options, passes_flag(options.passes));
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
