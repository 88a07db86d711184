// Which row runs, and how long the rest will take.

#include "progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "bench/io/text.h"

namespace lamina::bench {
namespace {

constexpr double guessed_share_of_peak = 0.5;  // until there are times of our own

}  // namespace

Progress::Progress(Peaks& peaks, const std::vector<Row>& rows, int passes) {
  double seconds = 0;
  std::set<const Group*> seen;
  for (const Row& row : rows) {
    const Group& group = *row.group;
    if (!seen.insert(&group).second) continue;
    const std::string& backend = group.config.backend;
    const double flops = group.flops_per_pass * (1 + passes_on(backend, passes));  // one pass warms up
    total_ += flops;
    const double peak = peaks.of(backend, group.config.dtype).flops_per_second;
    if (peak > 0) seconds += flops / (guessed_share_of_peak * peak);
  }
  group_count_ = seen.size();
  guessed_rate_ = seconds > 0 ? total_ / seconds : 0;
  start_ = std::chrono::steady_clock::now();
}

double Progress::left_seconds() const {
  const double elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  // The guess weighs as much as a twentieth of the work, so that the first small row does not decide alone.
  const double weight = total_ / 20;
  const double guessed = guessed_rate_ > 0 ? weight / guessed_rate_ : 0;
  if (done_ + weight <= 0) return 0;
  return (total_ - done_) * (elapsed + guessed) / (done_ + weight);
}

void Progress::show(const Row& row, int pass, int passes) {
  const bool new_group = shown_ != row.group.get();
  if (new_group && group_ < group_count_) ++group_;
  shown_ = row.group.get();
  if (!on_terminal() && !new_group) return;
  const std::string doing = pass == 0     ? "warming up"
                            : passes == 0 ? fmt::format("pass {}", pass)
                                          : fmt::format("pass {} of {}", pass, passes);
  std::string text = fmt::format("[{}/{}] {}, {}", group_, group_count_, row.group->title, doing);
  if (passes > 0 && (guessed_rate_ > 0 || done_ > 0))
    text += fmt::format(", about {} left", seconds_text(left_seconds()));
  show_step(text);
}

void Progress::pass_done(const Group& group) { done_ = std::min(total_, done_ + group.flops_per_pass); }

void Progress::group_failed(const Group& group, int passes_left) {
  total_ = std::max(done_, total_ - group.flops_per_pass * std::max(passes_left, 0));
}

}  // namespace lamina::bench
