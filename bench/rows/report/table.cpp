// The table of the published form.

#include "table.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "bench/io/quantities.h"

namespace lamina::bench {
namespace {

constexpr const char* line_form = "{:<14} {:<36} {:>11} {:>11} {:>11} {:>9} {:>9} {:>9}  {}";

std::string number(double value, int digits) { return value > 0 ? fmt::format("{:.{}f}", value, digits) : ""; }

using Cells = std::array<std::string, 9>;

std::string streamed(const Cells& c) {
  std::string line = fmt::format(line_form, c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], c[8]);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

/// "eigen f32 nchw batch 16"
std::string backend_text(const Config& c) {
  return fmt::format("{} {} {} batch {}", c.backend, to_string(c.dtype), to_string(c.layout), c.batch);
}

}  // namespace

std::string Table::header() const {
  return streamed({"network", "backend", "forward ms", "backward ms", "total ms", "+- ms", "images/s", "MiB", "note"});
}

std::string Table::take(const Row& row, const Outcome& outcome) {
  const Group& group = *row.group;
  if (group.parts.back() != "total" || taken_.contains(&group)) return {};
  const bool complete = row.part + 1 == group.parts.size();
  if (!complete && outcome.failure.empty()) return {};
  taken_.insert(&group);

  Cells cells{group.config.network, backend_text(group.config)};
  const std::vector<double> total = seconds_of(outcome.samples[2]);
  if (!total.empty()) {
    cells[2] = number(1e3 * mean(seconds_of(outcome.samples[0])), 2);
    cells[3] = number(1e3 * mean(seconds_of(outcome.samples[1])), 2);
    cells[4] = number(1e3 * mean(total), 2);
    if (total.size() > 1) cells[5] = fmt::format("{:.2f}", 1e3 * deviation(total));
    cells[6] = number(group.config.batch / mean(total), 1);
  }
  cells[7] = number(static_cast<double>(outcome.memory.total()) / mebibyte, 0);
  cells[8] = outcome.failure;
  return streamed(cells);
}

}  // namespace lamina::bench
