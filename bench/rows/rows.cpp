// Every row there is.

#include "rows.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "lamina/error.h"

namespace lamina::bench {

std::vector<Row> rows_of(const std::shared_ptr<Group>& group,
                         const std::function<std::string(std::string_view part)>& name) {
  group->samples.resize(group->parts.size());
  std::vector<Row> rows;
  for (std::size_t part = 0; part < group->parts.size(); ++part)
    rows.push_back({name(group->parts[part]), group, part});
  return rows;
}

std::vector<Row> all_rows(Workshop& workshop) {
  const BenchOptions& options = workshop.options();
  std::vector<Row> rows;
  const auto append = [&rows](std::vector<Row> more) {
    rows.insert(rows.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
  };
  const auto for_each_case = [&](auto&& make_rows) {
    for (const std::string& backend : workshop.backend_names())
      for (const nets::Info& info : nets::list())
        for (const DType dtype : options.dtypes)
          for (const Layout layout : options.layouts)
            for (const int batch : options.batches) {
              if (options.image != 0 && options.image < info.smallest_image) continue;
              append(make_rows(workshop, Case{std::string(info.name), backend, dtype, layout, batch}));
            }
  };
  for_each_case(setup_rows);  // before anything else has opened a library or warmed it up
  for_each_case(net_rows);
  for_each_case(layer_rows);
  return rows;
}

void check_files_are_used(const std::vector<Row>& rows, const BenchOptions& options) {
  const auto any = [&](std::string_view kind) {
    return std::any_of(rows.begin(), rows.end(), [&](const Row& row) { return row.name.starts_with(kind); });
  };
  if (!options.weights.empty() && !any("net/"))
    throw UsageError(
        "--weights is of rows net/..., and none is picked: rows layer/... and setup/... draw their numbers");
  if (!options.choices.empty() && !any("net/") && !any("setup/"))
    throw UsageError("--choices is of whole networks, and no such row is picked: rows layer/... name their algorithms");
}

}  // namespace lamina::bench
