// The table of the published form.

#include "table.h"

#include <fmt/format.h>

#include <algorithm>

#include "bench/io/quantities.h"
#include "bench/io/text_table.h"
#include "published.h"

namespace lamina::bench {
namespace {

constexpr const char* line_form = "{:<14} {:<36} {:>11} {:>11} {:>11} {:>9} {:>9} {:>9}  {}";

std::string number(double value, int digits) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : ""; }

/// The cells of a line; those without a number are empty.
std::vector<std::string> cells(const TableLine& line) {
  std::string spread = line.passes > 1 ? fmt::format("{:.2f}", line.deviation_ms) : std::string();
  return {line.network,
          line.backend,
          number(line.forward_ms, 2),
          number(line.backward_ms, 2),
          number(line.total_ms, 2),
          std::move(spread),
          number(line.images_per_second, 1),
          number(line.peak_MiB, 0),
          line.note};
}

std::string streamed(const std::vector<std::string>& c) {
  std::string line = fmt::format(line_form, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

const std::vector<TextTable::Column>& columns() {
  static const std::vector<TextTable::Column> titles = {{"network"},           {"backend"},        {"forward ms", true},
                                                        {"backward ms", true}, {"total ms", true}, {"+- ms", true},
                                                        {"images/s", true},    {"MiB", true},      {"note"}};
  return titles;
}

/// "eigen f32 nchw batch 16"
std::string backend_text(const Config& c) {
  return fmt::format("{} {} {} batch {}", c.backend, to_string(c.dtype), to_string(c.layout), c.batch);
}

TextTable text_table(const std::vector<TableLine>& lines) {
  TextTable table{columns(), {}};
  for (const TableLine& line : lines) table.rows.push_back(cells(line));
  return table;
}

}  // namespace

std::string Table::header() const {
  std::vector<std::string> titles;
  for (const TextTable::Column& column : columns()) titles.push_back(column.title);
  return streamed(titles);
}

std::string Table::take(const Row& row, const Outcome& outcome) {
  const Group& group = *row.group;
  if (group.parts.back() != "total" || taken_.contains(&group)) return {};
  const bool complete = row.part + 1 == group.parts.size();
  if (!complete && outcome.failure.empty()) return {};
  taken_.insert(&group);

  TableLine line;
  line.network = group.config.network;
  line.backend = backend_text(group.config);
  line.note = outcome.failure;
  const std::vector<double> total = seconds_of(outcome.samples[2]);
  if (!total.empty()) {
    line.forward_ms = 1e3 * mean(seconds_of(outcome.samples[0]));
    line.backward_ms = 1e3 * mean(seconds_of(outcome.samples[1]));
    line.total_ms = 1e3 * mean(total);
    line.deviation_ms = 1e3 * deviation(total);
    line.images_per_second = group.config.batch / mean(total);
    line.passes = static_cast<int>(total.size());
  }
  line.peak_MiB = static_cast<double>(outcome.memory.total()) / mebibyte;
  lines_.push_back(line);
  return streamed(cells(line));
}

void Table::add_published() {
  constexpr double published_batch = 16;
  std::vector<TableLine> joined;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    joined.push_back(lines_[i]);
    const bool last_of_network = i + 1 == lines_.size() || lines_[i + 1].network != lines_[i].network;
    if (!last_of_network) continue;
    for (const Published& row : published_times(lines_[i].network)) {
      TableLine line;
      line.network = row.network;
      const std::string library = row.cudnn == "cpu" ? "" : row.cudnn == "None" ? ", no cuDNN" : ", cuDNN " + row.cudnn;
      line.backend = row.device + library;
      line.forward_ms = row.forward_ms;
      line.backward_ms = row.backward_ms;
      line.total_ms = row.total_ms;
      line.images_per_second = 1e3 * published_batch / row.total_ms;
      line.source = row.source;
      line.note = fmt::format("published at batch {:.0f}: {}", published_batch, row.source);
      joined.push_back(line);
    }
  }
  lines_ = std::move(joined);
}

std::string Table::text() const { return text_table(lines_).text(); }
std::string Table::markdown() const { return text_table(lines_).markdown(); }

nlohmann::ordered_json Table::json() const {
  nlohmann::ordered_json lines = nlohmann::ordered_json::array();
  const auto or_null = [](double value) -> nlohmann::ordered_json {
    if (value > 0) return value;
    return nullptr;
  };
  for (const TableLine& line : lines_)
    lines.push_back({{"network", line.network},
                     {"backend", line.backend},
                     {"forward_ms", or_null(line.forward_ms)},
                     {"backward_ms", or_null(line.backward_ms)},
                     {"total_ms", or_null(line.total_ms)},
                     {"deviation_ms", line.deviation_ms},
                     {"images_per_second", or_null(line.images_per_second)},
                     {"peak_MiB", or_null(line.peak_MiB)},
                     {"passes", line.passes},
                     {"source", line.source.empty() ? "measured" : line.source},
                     {"note", line.note}});
  return lines;
}

}  // namespace lamina::bench
