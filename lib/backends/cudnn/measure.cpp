// Timing of a convolution's algorithms, with the betas and the workspace that will be in use.

#include "measure.h"

#include <algorithm>

namespace lamina::cudnn {
namespace {

constexpr int runs_ahead = 2, samples = 9;

/// Hands out memory from front to back, or only counts it where there is none.
class Lent {
 public:
  explicit Lent(void* at) : at_(static_cast<char*>(at)) {}
  void* take(std::size_t bytes) {
    void* const taken = at_ == nullptr ? nullptr : at_ + bytes_;
    bytes_ += aligned(bytes);
    return taken;
  }
  Tensor take(const TensorSpec& spec, std::int64_t pitch) {
    return {take(extent_bytes(spec, pitch)), spec.shape, spec.dtype, spec.layout, pitch};
  }
  std::size_t taken_bytes() const { return bytes_; }

 private:
  char* at_;
  std::size_t bytes_ = 0;
};

Args lay_out(const Spec& spec, const Lowered& lowered, Lent& memory) {
  Args args;
  for (const TensorSpec& x : spec.x) {
    args.x.push_back(memory.take(x, x.pitch));
    args.dx.push_back(memory.take(x, x.gradient_pitch));
  }
  for (const TensorSpec& w : spec.w) {
    args.w.push_back(memory.take(w, w.pitch));
    args.dw.push_back(memory.take(w, w.pitch));
  }
  args.y = memory.take(spec.y, spec.y.pitch);
  args.dy = memory.take(spec.y, spec.y.gradient_pitch);
  args.saved = memory.take(lowered.saved_bytes);
  args.scratch = memory.take(lowered.backward_bytes);
  args.workspace = memory.take(0);
  return args;
}

bool overlap(const Timing& a, const Timing& b) { return a.least <= b.most && b.least <= a.most; }

}  // namespace

std::size_t tensor_bytes(const Spec& spec, const Lowered& lowered) {
  Lent counted(nullptr);
  lay_out(spec, lowered, counted);
  return counted.taken_bytes();
}

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
  Lent memory(lent);
  const Args args = lay_out(spec, lowered, memory);
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
