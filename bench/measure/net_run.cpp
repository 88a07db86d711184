// The passes of a whole network, timed one by one.

#include "net_run.h"

#include <algorithm>

#include <fmt/format.h>

#include "bench/machine/ranks.h"
#include "lamina/lamina.h"
#include "layers.h"

namespace lamina::bench {

NetRun::NetRun(const Graph& graph, Backend& backend, const Options& options, bool recorded, const TensorFile& weights,
               Communicator* ranks, bool warm)
    : plan_(graph, backend, options), ranks_(ranks), stopwatch_(plan_.backend().device()) {
  if (training()) ranks_.make_buckets(plan_, TrainerOptions().bucket_bytes);
  if (!weights.empty()) load_weights(plan_, weights);
  pass();
  if (recorded) record();
  warm_ = warm;
}

std::vector<Sample> NetRun::pass() {
  if (training()) plan_.output_gradient();  // throws if backward has nothing to do
  // This also draws the output's gradient. So a GPU does not idle between forward and backward, and keeps its clock.
  draw_inputs(plan_, ++drawn_);
  if (warm_) untimed();
  spans_.clear();
  std::vector<Sample> samples = {timed("forward", [this] { forward(); })};
  if (training()) {
    samples.push_back(timed("backward", [this] { backward(true); }));
    add_sums(samples.back());
    samples.push_back(samples[1]);
    samples[2].seconds += samples[0].seconds;
    samples[2].cpu_seconds += samples[0].cpu_seconds;
  }
  return samples;
}

std::vector<double> NetRun::bytes() const {
  const GraphCost moved = plan_cost(plan_);
  const double ranks = ranks_.communicator().size(), forward = ranks * moved.forward.bytes;
  if (!training()) return {forward};
  return {forward, ranks * moved.backward.bytes, forward + ranks * moved.backward.bytes};
}

void NetRun::untimed() {
  forward();
  if (training()) backward(false);
}

Sample NetRun::timed(const char* what, const std::function<void()>& work) {
  ranks_.communicator().barrier();
  Sample sample = stopwatch_.time(work);
  const double end = steady_seconds();
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

/// Records the passes, and launches them once to warm up.
void NetRun::record() {
  Device& device = plan_.backend().device();
  forward_ = device.capture([this] { plan_.forward(); });
  if (training()) backward_ = device.capture([this] { plan_.backward(); });
  pass();
}

}  // namespace lamina::bench
