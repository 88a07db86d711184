// Every row there is.

#include "rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lamina/error.h"

namespace lamina::bench {

std::vector<Row> rows_of(const std::shared_ptr<Group>& group, const std::function<RowKey(std::string_view part)>& key) {
  group->samples.resize(group->parts.size());
  std::vector<Row> rows;
  for (std::size_t part = 0; part < group->parts.size(); ++part) {
    RowKey of_part = key(group->parts[part]);
    std::string name = to_string(of_part);
    rows.push_back({std::move(name), group, part, std::move(of_part)});
  }
  return rows;
}

std::vector<Row> all_rows(Workshop& workshop) {
  const Settings& settings = workshop.settings();
  std::vector<Row> rows;
  const auto append = [&rows](std::vector<Row> more) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  const auto for_each_case = [&](auto&& make_rows) {
    for (const std::string& backend : workshop.backend_names())
      for (const nets::Info& info : nets::list())
        for (const DType dtype : settings.dtypes)
          for (const Layout layout : settings.layouts)
            for (const int batch : settings.batches) {
              if (settings.image != 0 && settings.image < info.smallest_image) continue;
              append(make_rows(workshop, Case{std::string(info.name), backend, dtype, layout, batch}));
            }
  };
  for_each_case(setup_rows);  // before anything else has opened a library or warmed it up
  for_each_case(net_rows);
  for_each_case(layer_rows);
  return rows;
}

void check_files_are_used(const std::vector<Row>& rows, const Settings& settings) {
  const auto any = [&](std::string_view kind) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.key.what == kind; });
  };
  if (!settings.weights.empty() && !any("net"))
    throw UsageError(
        "--weights is of rows net/..., and none is picked: rows layer/... and setup/... draw their numbers");
  if (!settings.choices.empty() && !any("net") && !any("setup"))
    throw UsageError("--choices is of whole networks, and no such row is picked: rows layer/... name their algorithms");
}

}  // namespace lamina::bench
