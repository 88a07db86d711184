#pragma once
// What ranks did when, as a trace in the format that Perfetto and chrome://tracing open: one process for each network,
// two lanes for each rank, of passes and of sums.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/machine/backends.h"
#include "bench/measure/net_run.h"

namespace lamina::bench {

class Lanes {
 public:
  /// The spans of one pass of every rank, from the first pass of the network on. Every rank calls it.
  void add(Communicator&, const std::string& network, const std::vector<Span>&);
  /// Writes the file with the context of the run. Throws FileError.
  void save(const std::filesystem::path&, Backends&) const;

 private:
  nlohmann::ordered_json events_ = nlohmann::ordered_json::array();
  std::string network_;
  int process_ = 0;
  double start_ = 0;  // of the network; each machine has a clock of its own
};

}  // namespace lamina::bench
