// Choices by timing: algorithms race in lent memory.

#include "tune.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "lamina/error.h"
#include "lamina/random.h"
#include "support/held_launches.h"
#include "support/unit_memory.h"
#include "support/warm_up.h"

namespace lamina {
namespace {

using Candidate = LayerTuning::Candidate;

constexpr Pass passes[] = {Pass::forward, Pass::backward_params, Pass::backward_data};
constexpr double slow_factor = 10;      // times the fastest on one image: far behind
constexpr double short_seconds = 0.01;  // a hundred times what it takes to wake a sleeping thread
constexpr int runs_to_look_at = 3;      // of a short one, after the first

std::size_t index_of(Pass pass) { return static_cast<std::size_t>(pass); }

const Lowered::Step* step_of(Lowered&&, Pass) = delete;  // the step is the lowered unit's

const Lowered::Step* step_of(const Lowered& lowered, Pass pass) {
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) return &step;
  return nullptr;
}

void run(const Lowered& lowered, const Args& args, Pass pass) {
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) step.kernel->run(args);
}

std::string lacks(std::size_t needed, std::size_t lent) {
  return "needs " + std::to_string(needed) + " bytes to be measured in, of which " + std::to_string(lent) + " are lent";
}

/// Of one image; the pitches are the same.
Spec of_one_image(Spec spec) {
  for (TensorSpec& x : spec.x) x.shape.n = 1;
  spec.y.shape.n = 1;
  return spec;
}

class Contest {
 public:
  Contest(Backend& backend, const Spec& spec, Pass pass, const Choice& choice, void* lent, std::size_t lent_bytes,
          const TuningRules& rules)
      : backend_(backend),
        device_(backend.device()),
        pass_(pass),
        choice_(choice),
        lent_(lent),
        lent_bytes_(lent_bytes),
        rules_(rules),
        tuning_{spec, pass, {}, {}},
        timer_(device_.timer()),
        held_(device_) {}

  LayerTuning run() {
    add_candidates();
    const auto can_run = [](const Candidate& one) { return one.refused.empty(); };
    const auto left = std::count_if(tuning_.candidates.begin(), tuning_.candidates.end(), can_run);
    if (left > 1 || rules_.even_alone) {
      if (tuning_.spec.x.front().shape.n > 1) try_one_image();
      race_batch();
    }
    if (left == 1 && !rules_.even_alone) {
      const auto alone = std::find_if(tuning_.candidates.begin(), tuning_.candidates.end(), can_run);
      tuning_.picked.best = static_cast<std::size_t>(alone - tuning_.candidates.begin());
    } else {
      tuning_.picked = pick(tuning_.candidates, can_run);
    }
    return std::move(tuning_);
  }

 private:
  /// Calls work() and answers true, or the candidate is out with the reason.
  template <class Work>
  static bool attempt(Candidate& one, Work&& work) {
    try {
      work();
      return true;
    } catch (const Unsupported& error) {  // it cannot do the unit, or breaks a limit
      one.refused = error.what();
      one.unsupported = true;
    } catch (const OutOfMemory& error) {
      one.refused = error.what();
    } catch (const UsageError& error) {  // the environment makes it compute otherwise than asked, or it is unknown here
      one.refused = error.what();
      one.unsupported = true;
    }
    one.measured = {};
    return false;
  }

  /// The rule's pick, every other algorithm that is listed, and the further ones.
  void add_candidates() {
    std::vector<std::string> names{rules_.rule};
    if (names.front().empty()) {
      Candidate unasked;
      attempt(unasked, [&] {
        const Lowered lowered = backend_.lower(tuning_.spec, choice_);
        if (const Lowered::Step* step = step_of(lowered, pass_)) names.front() = step->algorithm;
      });
    }
    const std::string rule = names.front();
    if (rule.empty()) names.clear();
    const std::vector<std::string> listed = backend_.algorithms(tuning_.spec, pass_);
    for (const std::vector<std::string>* list : {&listed, &rules_.further})
      for (const std::string& name : *list)
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    for (const std::string& name : names) {
      Candidate one{.algorithm = name, .by_rule = name == rule};
      Lowered lowered;
      attempt(one, [&] {
        lowered = backend_.lower(tuning_.spec, named(name));
        const Lowered::Step* step = step_of(lowered, pass_);
        if (step == nullptr) throw Unsupported("nothing to run for this pass");
        one.measured.workspace_bytes = workspace_of(lowered);
        one.measured.deterministic = step->deterministic;
        one.measured.math = step->math;
        one.measured.guaranteed_error = step->max_error;
      });
      const std::size_t needed = one.refused.empty() ? lend_unit(tuning_.spec, lowered, nullptr).bytes : 0;
      if (needed > lent_bytes_) one.refused = lacks(needed, lent_bytes_);
      tuning_.candidates.push_back(std::move(one));
      lowered_.push_back(std::move(lowered));
    }
  }

  Choice named(const std::string& algorithm) const {
    Choice choice = choice_;
    choice.algorithm[index_of(pass_)] = algorithm;
    return choice;
  }

  std::size_t workspace_of(const Lowered& lowered) const {
    std::size_t bytes = 0;
    for (const Lowered::Step& step : lowered.steps)
      if (step.covers(pass_)) bytes = std::max(bytes, step.kernel->workspace_bytes());
    return bytes;
  }

  /// Who is far behind there, and would take too long, has that as its only run.
  void try_one_image() {
    const Spec one_image = of_one_image(tuning_.spec);
    std::vector<Lowered> lowered(tuning_.candidates.size());
    std::vector<double> seconds(lowered.size(), 0);
    double fastest = std::numeric_limits<double>::infinity();
    const auto one_run = [&](std::size_t i) {
      lowered[i] = backend_.lower(one_image, named(tuning_.candidates[i].algorithm));
      if (lend_unit(one_image, lowered[i], nullptr).bytes > lent_bytes_) return;
      prepare(one_image, lowered[i]);
      seconds[i] = tuning_.spec.x.front().shape.n * timed(lowered[i], lend_unit(one_image, lowered[i], lent_).args);
      fastest = std::min(fastest, seconds[i]);
    };
    draw(one_image);
    for (std::size_t i = 0; i < lowered.size(); ++i) {
      Candidate ignored;  // what cannot run on one image shows on the batch
      if (tuning_.candidates[i].refused.empty()) attempt(ignored, [&] { one_run(i); });
    }
    for (std::size_t i = 0; i < lowered.size(); ++i) {
      if (tuning_.candidates[i].by_rule) continue;  // what the others are held against
      if (seconds[i] <= std::max(rules_.longest_seconds, slow_factor * fastest)) continue;
      Measurement& measured = tuning_.candidates[i].measured;
      measured.seconds = {seconds[i]};
      measured.of_one_image = true;
      if (!rules_.look) continue;
      prepare(one_image, lowered[i]);
      const Args args = lend_unit(one_image, lowered[i], lent_).args;
      lamina::run(lowered[i], args, pass_);
      rules_.look(tuning_.candidates[i], one_image, args);
    }
  }

  void race_batch() {
    std::vector<std::size_t> entered;
    for (std::size_t i = 0; i < lowered_.size(); ++i)
      if (tuning_.candidates[i].refused.empty() && !tuning_.candidates[i].ran()) entered.push_back(i);
    draw(tuning_.spec);
    bool forward_ran = pass_ == Pass::forward;
    const auto time = [&](std::size_t k) -> std::optional<double> {
      Candidate& one = tuning_.candidates[entered[k]];
      double seconds = 0;
      const bool ran = attempt(one, [&] {
        const Lowered& lowered = lowered_[entered[k]];
        const Args args = lend_unit(tuning_.spec, lowered, lent_).args;
        if (!forward_ran) prepare(tuning_.spec, lowered);  // what the races of backward passes read
        forward_ran = true;
        seconds = timed_and_seen(one, lowered, args);
      });
      return ran ? std::optional<double>(seconds) : std::nullopt;
    };
    const std::vector<Raced> raced = race(entered.size(), time, rules_.race);
    for (std::size_t k = 0; k < entered.size(); ++k) {
      Measurement& measured = tuning_.candidates[entered[k]].measured;
      if (!tuning_.candidates[entered[k]].refused.empty()) continue;
      measured.seconds = raced[k].rounds.empty() ? Rounds{raced[k].warm_up_seconds} : raced[k].rounds;
      measured.finished = raced[k].finished;
    }
  }

  /// One timed run, and the looks at what it left.
  double timed_and_seen(Candidate& one, const Lowered& lowered, const Args& args) {
    if (rules_.before_run) rules_.before_run();
    const double seconds = timed(lowered, args);
    if (rules_.look)
      look_at_run(
          device_, one.measured.runs_compared == 0, seconds, [&] { lamina::run(lowered, args, pass_); },
          [&] { rules_.look(one, tuning_.spec, args); });
    return seconds;
  }

  /// Seconds of the device, its launches hidden: else small units would be ranked by their number of calls.
  double timed(const Lowered& lowered, const Args& args) {
    if (pass_ == Pass::forward) lamina::run(lowered, args, Pass::prepare);  // the others prepared theirs there
    held_.run(*timer_, [&] {
      timer_->start();
      lamina::run(lowered, args, pass_);
      timer_->stop();
    });
    return timer_->seconds();
  }

  /// What a backward pass reads: y, and what forward leaves for it.
  void prepare(const Spec& spec, const Lowered& lowered) {
    if (pass_ == Pass::forward) return;
    const Args args = lend_unit(spec, lowered, lent_).args;
    lamina::run(lowered, args, Pass::prepare);
    lamina::run(lowered, args, Pass::forward);
  }

  /// Normal numbers in every tensor, gaps included, and positive ones in running variances. Zeros or what was left in
  /// the memory could take another time, and so could what becomes NaN.
  void draw(const Spec& spec) {
    const LentUnit unit = lend_unit(spec, {}, lent_);
    std::vector<double> numbers(1 << 16);
    fill_normal(numbers, 1);
    fill(lent_, unit.tensors_bytes, spec.y.dtype, numbers);
    fill_uniform(numbers, 2);
    for (const Tensor& state : unit.args.state) {
      const std::size_t bytes = static_cast<std::size_t>(state.shape.count()) * size_of(state.dtype);
      if (state.dtype == DType::u64)
        device_.fill(state.data, 0, bytes);
      else
        fill(state.data, bytes, state.dtype, numbers);
    }
  }

  void fill(void* to, std::size_t bytes, DType dtype, std::span<const double> numbers) {
    const std::size_t size = size_of(dtype), count = bytes / size;
    for (std::size_t at = 0; at < count; at += numbers.size()) {
      const std::size_t here = std::min(numbers.size(), count - at);
      Tensor piece{static_cast<char*>(to) + at * size, {1, 1, 1, static_cast<int>(here)}, dtype};
      piece.pitch = static_cast<std::int64_t>(here);
      upload(device_, piece, numbers.first(here));
    }
  }

  Backend& backend_;
  Device& device_;
  Pass pass_;
  const Choice& choice_;
  void* lent_;
  std::size_t lent_bytes_;
  const TuningRules& rules_;
  LayerTuning tuning_;
  std::vector<Lowered> lowered_;  ///< by candidate
  std::unique_ptr<Timer> timer_;
  HeldLaunches held_;
};

std::string reasons(const LayerTuning& tuning) {
  std::string all;
  for (const Candidate& one : tuning.candidates) all += (all.empty() ? "" : "; ") + one.algorithm + ": " + one.refused;
  return all;
}

bool has_pass(const Spec& spec, Pass pass) {
  if (pass == Pass::forward) return true;
  const bool wants_dx = !spec.wants_dx.empty() && spec.wants_dx[0];
  return spec.mode == Mode::training && (pass == Pass::backward_params || wants_dx);
}

}  // namespace

bool leaves_open(const Backend& backend, const Spec& spec, const Choice& choice) {
  return std::any_of(std::begin(passes), std::end(passes), [&](Pass pass) {
    return has_pass(spec, pass) && choice.algorithm[index_of(pass)].empty() &&
           backend.algorithms(spec, pass).size() > 1;
  });
}

LayerTuning::Picked pick(const std::vector<Candidate>& candidates,
                         const std::function<bool(const Candidate&)>& admitted) {
  LayerTuning::Picked picked;
  std::vector<std::size_t> places;
  std::vector<Rounds> rounds;
  double least = no_bound;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const Candidate& one = candidates[i];
    if (!one.ran() || !admitted(one)) continue;
    if (one.measured.finished) {
      places.push_back(i);
      rounds.push_back(one.measured.seconds);
    } else if (const double seconds = median_interval(one.measured.seconds).middle; seconds < least) {
      least = seconds;
      picked.best = i;  // if nobody who finished is admitted
    }
  }
  if (places.empty()) return picked;
  const std::size_t best = winner(rounds);
  picked.best = places[best];
  for (std::size_t k = 0; k < places.size(); ++k)
    if (k != best && !beats(rounds[best], rounds[k])) picked.ties.push_back(places[k]);
  return picked;
}

void look_at_run(Device& device, bool first, double seconds, const std::function<void()>& run,
                 const std::function<void()>& look) {
  const bool is_short = seconds < short_seconds;
  if (first || !is_short) look();
  if (!first) return;
  for (int i = 0; is_short && i < runs_to_look_at; ++i) {
    run();
    look();
  }
  warm_up(device, run);  // it was idle while the host looked
}

LayerTuning tune(Backend& backend, const Spec& spec, Pass pass, const Choice& choice, void* lent,
                 std::size_t lent_bytes, const TuningRules& rules) {
  return Contest(backend, spec, pass, choice, lent, lent_bytes, rules).run();
}

std::vector<std::size_t> bytes_to_tune(Backend& backend, const Spec& spec, Pass pass, const Choice& choice) {
  std::set<std::size_t> bytes;
  for (const std::string& name : backend.algorithms(spec, pass)) {
    Choice named = choice;
    named.algorithm[index_of(pass)] = name;
    try {
      bytes.insert(lend_unit(spec, backend.lower(spec, named), nullptr).bytes);
    } catch (const Unsupported&) {
      // Needs none.
    } catch (const OutOfMemory&) {
      // Likewise.
    } catch (const UsageError&) {
      // Likewise.
    }
  }
  return {bytes.begin(), bytes.end()};
}

MeasuredChoice measure_in_turns(Backend& backend, const Spec& spec, const Choice& choice, void* lent,
                                std::size_t lent_bytes, const std::function<void(LayerTuning)>& seen) {
  Choice others = choice;  // with which the passes run that a race does not measure
  others.measure = false;
  if (!leaves_open(backend, spec, choice)) return {others};

  const std::string unit = std::string(backend.name()) + ": " + to_string(spec.op) + ": ";
  const Lowered rules = backend.lower(spec, others);
  if (const std::size_t needed = lend_unit(spec, rules, nullptr).bytes; lent == nullptr || needed > lent_bytes)
    throw Unsupported(unit + lacks(needed, lent_bytes));
  MeasuredChoice taken{others};
  for (const Pass pass : passes) {
    std::string& name = taken.choice.algorithm[index_of(pass)];
    const Lowered::Step* rule = step_of(rules, pass);
    if (!name.empty() || rule == nullptr) continue;
    TuningRules with;
    with.rule = rule->algorithm;
    LayerTuning tuning = tune(backend, spec, pass, others, lent, lent_bytes, with);
    if (!tuning.picked.best)
      throw Unsupported(unit + std::string(to_string(pass)) + ": nothing could be measured: " + reasons(tuning));
    name = tuning.candidates[*tuning.picked.best].algorithm;
    for (const std::size_t i : tuning.picked.ties) taken.tied[index_of(pass)].push_back(tuning.candidates[i].algorithm);
    // A rule's pick that cannot run is of no use to the other passes, which run it too.
    if (!tuning.candidates.front().refused.empty()) others.algorithm[index_of(pass)] = name;
    if (seen) seen(std::move(tuning));
  }
  return taken;
}

}  // namespace lamina
