// Human-readable text: bytes, seconds, the running step, tables.

#include "text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <ranges>
#include <utility>

namespace lamina::bench {
namespace {

std::string quoted(const std::string& cell) {
  if (cell.find_first_of(",\"\n") == std::string::npos) return cell;
  std::string text = "\"";
  for (const char c : cell) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

}  // namespace

std::string bytes_text(double bytes) {
  constexpr std::array units = {"KiB", "MiB", "GiB", "TiB"};
  if (bytes < 1024) return fmt::format("{:.0f} B", bytes);
  std::size_t unit = 0;
  for (bytes /= 1024; bytes >= 1023.995 && unit + 1 < units.size(); ++unit) bytes /= 1024;
  return fmt::format("{:.2f} {}", bytes, units[unit]);
}

std::string seconds_text(double seconds) {
  const auto whole = static_cast<long long>(std::ceil(seconds));
  if (whole >= 3600) return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
  if (whole >= 60) return fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

std::string to_utf8(const std::string& text) {
  using nlohmann::json;
  return json::parse(json(text).dump(-1, ' ', false, json::error_handler_t::replace));
}

bool on_terminal() {
  static const bool is = isatty(STDERR_FILENO) == 1;
  return is;
}

void show_step(const std::string& what) {
  fmt::print(stderr, "{}{}{}", on_terminal() ? "\r\033[K" : "", what, on_terminal() ? "" : "\n");
  std::fflush(stderr);
}

void clear_step() {
  if (on_terminal()) show_step("");
}

std::vector<std::string> TextTable::titles() const {
  std::vector<std::string> row;
  for (const Column& column : columns) row.push_back(column.title);
  return row;
}

std::string TextTable::line(const std::vector<std::string>& cells) const {
  std::string text;
  for (std::size_t i = 0; i < cells.size(); ++i)
    text += columns[i].number ? fmt::format("{:>{}}  ", cells[i], columns[i].width)
                              : fmt::format("{:<{}}  ", cells[i], columns[i].width);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string TextTable::text() const {
  TextTable fitted{columns};
  fitted.rows.push_back(titles());
  fitted.rows.insert(fitted.rows.end(), rows.begin(), rows.end());
  for (const auto& row : fitted.rows)
    for (std::size_t i = 0; i < row.size(); ++i)
      fitted.columns[i].width = std::max(fitted.columns[i].width, row[i].size());
  std::string text;
  for (const auto& row : fitted.rows) text += fitted.line(row);
  return text;
}

std::string TextTable::csv(bool titled) const {
  std::string text;
  const auto line = [&](const std::vector<std::string>& row) {
    text += fmt::format("{}\n", fmt::join(row | std::views::transform(quoted), ","));
  };
  if (titled) line(titles());
  std::ranges::for_each(rows, line);
  return text;
}

TextTables::TextTables(Format format, std::vector<TextTable::Column> of, std::vector<TextTable::Column> columns)
    : csv_(format == Format::csv), table_{std::move(columns)} {
  if (csv_) table_.columns.insert(table_.columns.begin(), of.begin(), of.end());
}

void TextTables::add(const std::vector<std::string>& of, std::vector<std::string> cells) {
  if (csv_) cells.insert(cells.begin(), of.begin(), of.end());
  table_.rows.push_back(std::move(cells));
}

std::string TextTables::take(const std::string& head, const std::string& foot) {
  const bool first = std::exchange(first_, false);
  std::string text = csv_ ? table_.csv(first) : (first ? "" : "\n") + head + "\n\n" + table_.text() + foot;
  table_.rows.clear();
  return text;
}

}  // namespace lamina::bench
