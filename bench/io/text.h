#pragma once
// Human-readable text: bytes, seconds, the running step, tables.

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace lamina::bench {

constexpr double mebibyte = 1024.0 * 1024.0;

std::string bytes_text(double bytes);      ///< "4.21 GiB", "17 B"
std::string seconds_text(double seconds);  ///< "2 h 5 min", "3 min 20 s", "14 s"

/// The text with U+FFFD in place of bytes that are not UTF-8.
std::string to_utf8(const std::string&);

bool on_terminal();  ///< whether standard error is a terminal

void show_step(const std::string& what);
void clear_step();  ///< removes the shown step; call it before printing other text

/// A function that prints a table, or a part of a table, as soon as it is made.
using Print = std::function<void(const std::string&)>;

enum class Format { text, csv };

struct TextTable {
  struct Column {
    // NOLINTBEGIN(google-explicit-constructor): implicit, so that a list of titles is a list of columns
    /// A > before the title aligns the column on the right, for numbers.
    Column(const std::string& text, std::size_t least_width = 0)
        : title(text.substr(text.starts_with('>') ? 1 : 0)), number(text.starts_with('>')), width(least_width) {}
    Column(const char* text, std::size_t least_width = 0) : Column(std::string(text), least_width) {}
    // NOLINTEND(google-explicit-constructor)
    std::string title;
    bool number;
    std::size_t width;  ///< least width of the cells, in characters
  };
  std::vector<Column> columns{};
  std::vector<std::vector<std::string>> rows{};

  std::string text() const;
  std::string line(const std::vector<std::string>& cells) const;  ///< one row, cells padded to the columns' widths
  std::string csv(bool titled = true) const;                      ///< as in RFC 4180; `titled`: titles come first
  std::vector<std::string> titles() const;
  std::string print(Format format) const { return format == Format::csv ? csv() : text(); }
};

/// A table for each of several things, such as networks. As text, the tables are separate. As CSV, they are one table,
/// and its first columns name the thing.
class TextTables {
 public:
  TextTables(Format format, std::vector<TextTable::Column> of, std::vector<TextTable::Column> columns);
  void add(const std::vector<std::string>& of, std::vector<std::string> cells);
  bool empty() const { return table_.rows.empty(); }  ///< whether nothing was added since the last call of take()
  /// The rows that were added since the last call. As text, they are between `head` and `foot`, after an empty line
  /// from the second call on. As CSV, only the first call has the titles.
  std::string take(const std::string& head = {}, const std::string& foot = {});

 private:
  bool csv_, first_ = true;
  TextTable table_;
};

}  // namespace lamina::bench
