// Points of a sweep as text.

#include "series.h"

#include <fmt/format.h>

#include <utility>

#include "bench/io/text_table.h"

namespace lamina::bench {

std::string to_string(const Series& series) {
  return fmt::format("{} on {}, {} {}{}{}", series.network, series.backend, to_string(series.dtype),
                     to_string(series.layout), series.image > 0 ? fmt::format(", image {}", series.image) : "",
                     series.algorithm.empty() ? "" : ", " + series.algorithm);
}

std::string points_text(const std::vector<SweptPoint>& points) {
  TextTable table{{{"network"},
                   {"batch", true},
                   {"threads", true},
                   {"ms", true},
                   {"interval"},
                   {"ms per image", true},
                   {"images/s", true},
                   {"note"}}};
  for (const SweptPoint& line : points) {
    const SweepPoint& point = line.point;
    const std::string threads = point.threads > 0 ? fmt::format("{}", point.threads) : "";
    std::vector<std::string> row = {to_string(line.series), fmt::format("{}", point.batch), threads, "", "", "", "",
                                    point.failure};
    if (!point.seconds.empty()) {
      const Interval ms = median_interval(point.seconds);
      row[3] = fmt::format("{:.3f}", 1e3 * ms.middle);
      row[4] = fmt::format("{:.3f} .. {:.3f}", 1e3 * ms.low, 1e3 * ms.high);
      row[5] = fmt::format("{:.3f}", 1e3 * ms.middle / point.batch);
      row[6] = fmt::format("{:.1f}", point.batch / ms.middle);
    }
    table.rows.push_back(std::move(row));
  }
  return table.text();
}

}  // namespace lamina::bench
