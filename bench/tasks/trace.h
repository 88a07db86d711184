#pragma once
// Ledgers as a trace in the format that Perfetto and chrome://tracing open: one process for each ledger, below one
// another, each with the calls as measured, in the least time that the measured rates allow, and the bytes in use.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

#include "ledger.h"

namespace lamina::bench {

class Trace {
 public:
  /// The calls in running order, one after another from 0: a ledger has times and no moments. `name`: of its process.
  void add(const std::string& name, const Ledger&, const Rates&);
  /// Writes the file with the context of the run. Throws FileError.
  void save(const std::filesystem::path&, Backends&);
  const nlohmann::ordered_json& events() const { return events_; }

 private:
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  int processes_ = 0;
};

}  // namespace lamina::bench
