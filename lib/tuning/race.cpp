// Times candidates in turns.

#include "lamina/tuning.h"

#include <algorithm>
#include <limits>

namespace lamina {
namespace {

constexpr double hopeless_factor = 4, hopeless_seconds = 0.01;  // a run beyond both is not just noisy
constexpr double clear_factor = 2;                              // factor between intervals
constexpr std::size_t rounds_to_be_clear = 3;

class Race {
 public:
  Race(std::size_t candidates, const std::function<std::optional<double>(std::size_t)>& time)
      : time_(time), all_(candidates) {
    for (Raced& one : all_) one.finished = true;  // until it leaves
  }

  std::vector<Raced> run(const RaceRules& rules) {
    one_round(false, [](Raced& one, double seconds) { one.warm_up_seconds = seconds; });
    drop_hopeless();
    for (std::size_t round = 1; round <= rules.rounds; ++round) {
      one_round(round % 2 != 0, [](Raced& one, double seconds) { one.rounds.push_back(seconds); });
      if (round >= rounds_to_be_clear) drop_clearly_behind();
      const auto left = std::count_if(all_.begin(), all_.end(), [](const Raced& one) { return one.finished; });
      if (left == 0 || (round >= fewest_samples && (left == 1 || seconds_ > rules.seconds))) break;
    }
    return std::move(all_);
  }

 private:
  template <class Keep>
  void one_round(bool backwards, Keep keep) {
    for (std::size_t k = 0; k < all_.size(); ++k) {
      const std::size_t i = backwards ? all_.size() - 1 - k : k;
      if (!all_[i].finished) continue;
      const std::optional<double> seconds = time_(i);
      if (!seconds) {
        all_[i] = {};
        continue;
      }
      keep(all_[i], *seconds);
      seconds_ += *seconds;
    }
  }

  void drop_hopeless() {
    double shortest = std::numeric_limits<double>::infinity();
    for (const Raced& one : all_)
      if (one.finished) shortest = std::min(shortest, one.warm_up_seconds);
    for (std::size_t i = 1; i < all_.size(); ++i)
      if (all_[i].warm_up_seconds > std::max(hopeless_seconds, hopeless_factor * shortest)) all_[i].finished = false;
  }

  void drop_clearly_behind() {
    Interval best{0, std::numeric_limits<double>::infinity(), 0};
    std::vector<Interval> intervals(all_.size());
    for (std::size_t i = 0; i < all_.size(); ++i) {
      if (!all_[i].finished) continue;
      intervals[i] = median_interval(all_[i].rounds);
      if (intervals[i].middle < best.middle) best = intervals[i];
    }
    for (std::size_t i = 1; i < all_.size(); ++i)
      if (intervals[i].low > clear_factor * best.high) all_[i].finished = false;
  }

  const std::function<std::optional<double>(std::size_t)>& time_;
  std::vector<Raced> all_;
  double seconds_ = 0;
};

}  // namespace

std::vector<Raced> race(std::size_t candidates, const std::function<std::optional<double>(std::size_t)>& time,
                        const RaceRules& rules) {
  return Race(candidates, time).run(rules);
}

bool beats(const Rounds& challenger, const Rounds& leader, double factor) {
  return !challenger.empty() && challenger.size() >= leader.size() &&
         factor * ratio_interval(leader, challenger).high < 1;
}

std::size_t winner(const std::vector<Rounds>& candidates, double factor) {
  std::size_t leader = 0;
  for (std::size_t i = 1; i < candidates.size(); ++i)
    if (beats(candidates[i], candidates[leader], factor)) leader = i;
  return leader;
}

}  // namespace lamina
