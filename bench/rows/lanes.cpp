// What ranks did when, as a trace.

#include "lanes.h"

#include <fmt/format.h>

#include "bench/context/results.h"
#include "bench/io/result_file.h"

namespace lamina::bench {

using Json = nlohmann::ordered_json;

void Lanes::add(Communicator& ranks, const std::string& network, const std::vector<Span>& spans) {
  const auto name = [&](const char* what, int lane, const std::string& text) {
    events_.push_back({{"ph", "M"}, {"name", what}, {"pid", process_}, {"tid", lane}, {"args", {{"name", text}}}});
  };
  if (network != network_) {
    network_ = network;
    start_ = spans.front().begin;
    ++process_;
    name("process_name", 0, network);
    for (int rank = 0; rank < ranks.size(); ++rank) {
      name("thread_name", 2 * rank, fmt::format("rank {}", rank));
      name("thread_name", 2 * rank + 1, fmt::format("rank {}: sums", rank));
    }
  }
  Json mine = Json::array();
  for (const Span& span : spans)
    mine.push_back({{"ph", "X"},
                    {"name", span.what},
                    {"ts", 1e6 * (span.begin - start_)},
                    {"dur", 1e6 * (span.end - span.begin)},
                    {"pid", process_},
                    {"tid", 2 * ranks.rank() + (span.is_sum ? 1 : 0)}});
  for (int rank = 0; rank < ranks.size(); ++rank)
    for (Json& event : Json::parse(broadcast_text(ranks, mine.dump(), rank))) events_.push_back(std::move(event));
}

void Lanes::save(const std::filesystem::path& path, Backends& backends) const {
  const Json trace = {{"displayTimeUnit", "ms"}, {"otherData", start_context(backends)}, {"traceEvents", events_}};
  replace_file(path, trace.dump() + "\n");
}

}  // namespace lamina::bench
