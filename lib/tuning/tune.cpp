// Choices by timing: the algorithms of one unit and pass race in memory that the caller lends.

#include "lamina/tuning.h"

#include <algorithm>
#include <limits>
#include <memory>
#include <set>
#include <span>
#include <utility>

#include "lamina/error.h"
#include "lamina/random.h"
#include "lamina/timing.h"
#include "lib/core/units/unit_memory.h"
#include "measure_in_turns.h"

namespace lamina {
namespace {

using Candidate = LayerTuning::Candidate;

constexpr double slow_factor = 10;      // factor over the fastest on one image: clearly slower
constexpr double short_seconds = 0.01;  // a hundred times the time to wake a sleeping thread
constexpr int looks = 4;                // looks at the results of short runs

void run(const Lowered& lowered, const Args& args, Pass pass) {
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) step.kernel->run(args);
}

/// The unit for one image; the pitches are the same.
Spec for_one_image(Spec spec) {
  for (TensorSpec& x : spec.x) x.shape.n = 1;
  spec.y.shape.n = 1;
  return spec;
}

/// Fills a tensor and its gaps.
void fill(Device& device, const Tensor& to, std::span<const double> numbers) {
  const std::int64_t steps = to.layout == Layout::nchw ? to.shape.n : to.shape.n * to.shape.plane();
  const auto count = to ? static_cast<std::size_t>(steps * to.pitch) : 0;
  for (std::size_t at = 0; at < count; at += numbers.size()) {
    const std::size_t here = std::min(numbers.size(), count - at);
    Tensor piece{to.as<char>() + at * size_of(to.dtype), {1, 1, 1, static_cast<int>(here)}, to.dtype};
    piece.pitch = static_cast<std::int64_t>(here);
    upload(device, piece, numbers.first(here));
  }
}

/// Fills every tensor of the unit, gaps included: with normal numbers, and running variances with positive numbers.
/// With zeros, old contents or numbers that become NaN, a run could take more or less time.
void draw_numbers(Device& device, const Spec& spec, void* buffer) {
  const Args unit = bind_in_buffer(spec, {}, buffer).args;
  std::vector<double> numbers(1 << 16);
  fill_normal(numbers, 1);
  for (const std::vector<Tensor>& tensors : {unit.x, unit.dx, unit.w, unit.dw, {unit.y, unit.dy}})
    for (const Tensor& tensor : tensors) fill(device, tensor, numbers);
  fill_uniform(numbers, 2);
  for (const Tensor& state : unit.state) {
    if (state.dtype == DType::u64)
      device.fill(state.data, 0, static_cast<std::size_t>(state.shape.count()) * size_of(state.dtype));
    else
      fill(device, state, numbers);
  }
}

class PassTuner {
 public:
  PassTuner(Backend& backend, const Spec& spec, Pass pass, const Choice& choice, void* buffer, std::size_t buffer_bytes,
            const TuningRules& rules)
      : backend_(backend),
        device_(backend.device()),
        pass_(pass),
        choice_(choice),
        buffer_(buffer),
        buffer_bytes_(buffer_bytes),
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
  /// Calls work() and returns true, or notes why the candidate cannot run.
  template <class Work>
  bool attempt(Candidate& one, Work&& work) {
    try {
      work();
      return true;
    } catch (const Unsupported& error) {  // it cannot do the unit, or breaks a limit
      one.refused = error.what();
      one.unsupported = true;
    } catch (const OutOfMemory& error) {
      one.refused = error.what();
    } catch (const DeviceError& error) {
      device_.synchronize();  // throws if the device itself has failed
      one.refused = error.what(), one.failed = true;
    } catch (const UsageError& error) {  // no algorithm of this backend, or one that the environment changes
      one.refused = error.what();
      one.unsupported = true;
    }
    one.measured = {};
    return false;
  }

  /// The rule's pick, every other listed algorithm, and the rules' further algorithms.
  void add_candidates() {
    std::vector<std::string> names{rules_.rule};
    if (names.front().empty()) {
      Candidate unasked;
      attempt(unasked, [&] {
        const Lowered lowered = backend_.lower(tuning_.spec, choice_);
        if (const Lowered::Step* step = find_step(lowered, pass_)) names.front() = step->algorithm;
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
        const Lowered::Step* step = find_step(lowered, pass_);
        if (step == nullptr) throw Unsupported("nothing to run for this pass");
        one.measured.workspace_bytes = workspace_bytes(lowered, pass_);
        one.measured.deterministic = step->deterministic;
        one.measured.math = step->math;
        one.measured.guaranteed_error = step->max_error;
      });
      const std::size_t needed = one.refused.empty() ? bind_in_buffer(tuning_.spec, lowered, nullptr).bytes : 0;
      if (needed > buffer_bytes_)
        one.refused = lacks(needed, buffer_bytes_);
      else
        most_bytes_ = std::max(most_bytes_, needed);
      tuning_.candidates.push_back(std::move(one));
      lowered_.push_back(std::move(lowered));
    }
  }

  Choice named(const std::string& algorithm) const {
    Choice choice = choice_;
    choice.algorithm[index_of(pass_)] = algorithm;
    return choice;
  }

  /// A candidate that is clearly slower on one image, and would take too long on the batch, gets no other run.
  void try_one_image() {
    const Spec one_image = for_one_image(tuning_.spec);
    std::vector<Lowered> lowered(tuning_.candidates.size());
    std::vector<double> seconds(lowered.size(), 0);
    double fastest = std::numeric_limits<double>::infinity();
    const auto one_run = [&](std::size_t i) {
      lowered[i] = backend_.lower(one_image, named(tuning_.candidates[i].algorithm));
      if (bind_in_buffer(one_image, lowered[i], nullptr).bytes > buffer_bytes_) return;
      seconds[i] = tuning_.spec.x.front().shape.n * timed(lowered[i], prepare(one_image, lowered[i]));
      fastest = std::min(fastest, seconds[i]);
    };
    draw_numbers(device_, one_image, buffer_);
    for (std::size_t i = 0; i < lowered.size(); ++i) {
      Candidate ignored;  // a candidate that cannot run at all also fails on the batch, where the reason is kept
      if (tuning_.candidates[i].refused.empty()) attempt(ignored, [&] { one_run(i); });
    }
    for (std::size_t i = 0; i < lowered.size(); ++i) {
      if (tuning_.candidates[i].by_rule) continue;  // it always runs on the batch, for comparison
      if (seconds[i] <= std::max(rules_.longest_seconds, slow_factor * fastest)) continue;
      Measurement& measured = tuning_.candidates[i].measured;
      measured.seconds = {seconds[i]};
      measured.of_one_image = true;
      if (!rules_.look) continue;
      const Args args = prepare(one_image, lowered[i]);
      lamina::run(lowered[i], args, pass_);
      rules_.look(tuning_.candidates[i], one_image, args);
    }
  }

  void race_batch() {
    std::vector<std::size_t> entered;
    for (std::size_t i = 0; i < lowered_.size(); ++i)
      if (tuning_.candidates[i].refused.empty() && !tuning_.candidates[i].ran()) entered.push_back(i);
    draw_numbers(device_, tuning_.spec, buffer_);
    bool forward_ran = pass_ == Pass::forward;
    const auto time = [&](std::size_t k) -> std::optional<double> {
      Candidate& one = tuning_.candidates[entered[k]];
      double seconds = 0;
      const bool ran = attempt(one, [&] {
        const Lowered& lowered = lowered_[entered[k]];
        const Args args = bind_in_buffer(tuning_.spec, lowered, buffer_).args;
        if (!forward_ran) prepare(tuning_.spec, lowered);  // makes the values that backward passes read
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

  /// One timed run, and the looks at its results.
  double timed_and_seen(Candidate& one, const Lowered& lowered, const Args& args) {
    if (rules_.before_run) rules_.before_run();
    const double seconds = timed(lowered, args);
    if (rules_.look)
      inspect_timed_run(
          device_, one.measured.runs_compared, seconds, [&] { lamina::run(lowered, args, pass_); },
          [&] { rules_.look(one, tuning_.spec, args); });
    return seconds;
  }

  /// The device's seconds without launches. With launches, small units would be ranked by their number of calls. Before
  /// the run, a write to memory that no candidate needs empties a GPU's caches, as other layers of a pass would do.
  double timed(const Lowered& lowered, const Args& args) {
    if (pass_ == Pass::forward) lamina::run(lowered, args, Pass::prepare);  // backward passes: done in prepare()
    const std::size_t rest = std::min(buffer_bytes_ - most_bytes_, twice_a_cache);
    held_.run(*timer_, [&] {
      if (device_.longest_hold() > 0 && rest > 0) device_.fill(static_cast<char*>(buffer_) + most_bytes_, 0, rest);
      timer_->start();
      lamina::run(lowered, args, pass_);
      timer_->stop();
    });
    return timer_->seconds();
  }

  /// Binds the unit in the buffer. For a backward pass, it makes the values that the pass reads: y, and saved blocks.
  Args prepare(const Spec& spec, const Lowered& lowered) {
    Args args = bind_in_buffer(spec, lowered, buffer_).args;
    if (pass_ == Pass::forward) return args;
    lamina::run(lowered, args, Pass::prepare);
    lamina::run(lowered, args, Pass::forward);
    return args;
  }

  Backend& backend_;
  Device& device_;
  Pass pass_;
  const Choice& choice_;
  void* buffer_;
  std::size_t buffer_bytes_;
  const TuningRules& rules_;
  LayerTuning tuning_;
  std::vector<Lowered> lowered_;  ///< lowered units by candidate
  std::size_t most_bytes_ = 0;    ///< most bytes of a candidate that fits into the buffer
  std::unique_ptr<Timer> timer_;
  HeldLaunches held_;
};

}  // namespace

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
      picked.best = i;  // unless a candidate that finished is admitted
    }
  }
  if (places.empty()) return picked;
  const std::size_t best = winner(rounds);
  picked.best = places[best];
  for (std::size_t k = 0; k < places.size(); ++k)
    if (k != best && !beats(rounds[best], rounds[k])) picked.ties.push_back(places[k]);
  return picked;
}

void inspect_timed_run(Device& device, int looked, double seconds, const std::function<void()>& run,
                       const std::function<void()>& look) {
  const bool is_short = seconds < short_seconds;
  if (is_short && looked >= looks) return;
  look();
  for (int i = looked + 1; is_short && i < looks; ++i) {
    run();
    look();
  }
  if (is_short || looked == 0) warm_up(device, run);  // the device was idle while the host looked
}

LayerTuning tune(Backend& backend, const Spec& spec, Pass pass, const Choice& choice, void* buffer,
                 std::size_t buffer_bytes, const TuningRules& rules) {
  return PassTuner(backend, spec, pass, choice, buffer, buffer_bytes, rules).run();
}

std::vector<std::size_t> bytes_to_tune(Backend& backend, const Spec& spec, Pass pass, const Choice& choice) {
  std::set<std::size_t> bytes;
  for (const std::string& name : backend.algorithms(spec, pass)) {
    Choice named = choice;
    named.algorithm[index_of(pass)] = name;
    try {
      bytes.insert(bind_in_buffer(spec, backend.lower(spec, named), nullptr).bytes);
    } catch (const Unsupported&) {     // an algorithm that cannot run needs no bytes
    } catch (const UsageError&) {      // the same
    } catch (const DeviceError&) {     // OutOfMemory among them
      backend.device().synchronize();  // throws if the device itself has failed
    }
  }
  return {bytes.begin(), bytes.end()};
}

}  // namespace lamina
