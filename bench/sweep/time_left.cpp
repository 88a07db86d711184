// The time left of a sweep.

#include "time_left.h"

namespace lamina::bench {

void TimeLeft::plan(const std::string& point, double work, double passes) { planned_[point] = {work, passes}; }

void TimeLeft::done(const std::string& point, double seconds) {
  const auto found = planned_.find(point);
  if (found == planned_.end()) return;
  done_work_ += found->second.work;
  done_seconds_ += seconds;
  planned_.erase(found);
}

void TimeLeft::drop(const std::string& point) { planned_.erase(point); }

double TimeLeft::seconds(double longest_pass) const {
  if (done_work_ <= 0) return 0;
  double left = 0;
  for (const auto& [name, point] : planned_) {
    const double its = point.work * done_seconds_ / done_work_;
    if (its / point.passes <= longest_pass) left += its;
  }
  return left;
}

}  // namespace lamina::bench
