// A whole network's passes, timed one by one.

#include "net_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "bench/machine/ranks.h"
#include "lamina/lamina.h"

namespace lamina::bench {

NetRun::NetRun(const Graph& graph, Backend& backend, const Options& options, bool recorded, const TensorFile& weights,
               Communicator* ranks)
    : plan_(graph, backend, options), ranks_(ranks), stopwatch_(plan_.backend().device()) {
  if (training()) ranks_.make_buckets(plan_, TrainerOptions().bucket_bytes);
  if (!weights.empty()) load_weights(plan_, weights);
  pass();
  if (recorded) record();
}

std::vector<Sample> NetRun::pass(bool warm) {
  if (training()) plan_.output_gradient();  // or throws, where backward has nothing to do
  // Also of the output's gradient: a GPU is then not idle, and its clock does not fall, between the two passes.
  draw_inputs(plan_, ++drawn_);
  if (warm) untimed();
  spans_.clear();
  std::vector<Sample> samples = {timed("forward", [this] { forward(); })};
  if (training()) {
    samples.push_back(timed("backward", [this] { backward(true); }));
    add_sums(samples.back());
  }
  return samples;
}

void NetRun::untimed() {
  forward();
  if (training()) backward(false);
}

Sample NetRun::timed(const char* what, const std::function<void()>& work) {
  ranks_.communicator().barrier();
  Sample sample = stopwatch_.time(work);
  const double end = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  spans_.push_back({what, end - sample.seconds, end});
  sample = joined(ranks_.communicator(), sample);
  if (forward_) sample.launches = Launches::replayed;
  return sample;
}

void NetRun::add_sums(Sample& backward) {
  for (const AllReduceTimes& each : last_all_reduces(ranks_.communicator())) {
    if (backward.sums.bytes == 0) spans_.push_back({"waits for sums", each.waited, spans_.back().end});
    backward.sums.bytes += static_cast<double>(each.bytes);
    backward.sums.seconds += each.end - each.begin;
    backward.sums.hidden_seconds += std::clamp(each.waited - each.begin, 0.0, each.end - each.begin);
    spans_.push_back({fmt::format("{} bytes", each.bytes), each.begin, each.end, true});
  }
}

/// The first launch is to warm up as well.
void NetRun::record() {
  Device& device = plan_.backend().device();
  forward_ = device.capture([this] { plan_.forward(); });
  if (training()) backward_ = device.capture([this] { plan_.backward(); });
  pass();
}

}  // namespace lamina::bench
