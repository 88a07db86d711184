#pragma once
// A table of texts, printed in columns or as CSV, and where tables go.

#include <functional>
#include <string>
#include <vector>

namespace lamina::bench {

/// Takes a table, or a part of one, as soon as it is made.
using Print = std::function<void(const std::string&)>;

enum class Format { text, csv };

struct TextTable {
  struct Column {
    std::string title;
    bool number = false;  ///< numbers are aligned on the right
  };
  std::vector<Column> columns{};
  std::vector<std::vector<std::string>> rows{};

  std::string text() const;
  std::string csv(bool titled = true) const;  ///< RFC 4180
  std::string print(Format format) const { return format == Format::csv ? csv() : text(); }
};

/// A table for each of several things, such as networks: apart as text, one after another as CSV, whose first columns
/// then say of what a row is.
class TextTables {
 public:
  TextTables(Format format, std::vector<TextTable::Column> of, std::vector<TextTable::Column> columns);
  void add(const std::vector<std::string>& of, std::vector<std::string> cells);
  bool empty() const { return table_.rows.empty(); }  ///< nothing was added since the last call of take()
  /// What was added since the last call. CSV has its titles in the first answer only.
  std::string take();

 private:
  bool csv_, titled_ = true;
  TextTable table_;
};

}  // namespace lamina::bench
