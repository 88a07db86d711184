// Timing of a convolution's algorithms, with the betas and the workspace that will be in use.

#include "measure.h"

#include <algorithm>

#include "../unit_memory.h"

namespace lamina::cudnn {
namespace {

constexpr int runs_ahead = 2, samples = 9;

bool overlap(const Timing& a, const Timing& b) { return a.least <= b.most && b.least <= a.most; }

}  // namespace

std::size_t tensor_bytes(const Spec& spec, const Lowered& lowered) { return bind_unit(spec, lowered, nullptr).bytes; }

void rank(std::vector<Timing>& timings) {
  std::stable_sort(timings.begin(), timings.end(), [](const Timing& a, const Timing& b) {
    if (a.refused.empty() != b.refused.empty()) return a.refused.empty();
    return a.refused.empty() && a.median < b.median;
  });
  if (timings.empty() || !timings[0].refused.empty()) return;
  const Timing fastest = timings[0];
  std::size_t lead = 0;
  for (std::size_t i = 1; i < timings.size() && timings[i].refused.empty(); ++i) {
    if (!overlap(timings[i], fastest)) continue;
    timings[i].tied = timings[0].tied = true;
    if (timings[i].workspace_bytes < timings[lead].workspace_bytes) lead = i;
  }
  std::rotate(timings.begin(), timings.begin() + static_cast<std::ptrdiff_t>(lead),
              timings.begin() + static_cast<std::ptrdiff_t>(lead) + 1);
}

Timing time_step(const Spec& spec, const Lowered& lowered, const Lowered::Step& step, Device& device, void* lent) {
  const UnitMemory unit = bind_unit(spec, lowered, lent);
  Args args = unit.args;
  args.workspace = static_cast<char*>(lent) + unit.bytes;
  for (int i = 0; i < runs_ahead; ++i) step.kernel->run(args);
  const auto timer = device.timer();
  std::vector<double> seconds;
  for (int i = 0; i < samples; ++i) {
    timer->start();
    step.kernel->run(args);
    timer->stop();
    seconds.push_back(timer->seconds());
  }
  std::sort(seconds.begin(), seconds.end());
  return {.algorithm = step.algorithm,
          .median = seconds[samples / 2],
          .least = seconds.front(),
          .most = seconds.back(),
          .workspace_bytes = step.kernel->workspace_bytes()};
}

}  // namespace lamina::cudnn
