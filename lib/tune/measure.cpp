// Choices by timing: a race of algorithms in lent memory.

#include "measure.h"

#include <algorithm>
#include <memory>
#include <span>

#include "lamina/error.h"
#include "lamina/random.h"
#include "support/held_launches.h"
#include "support/unit_memory.h"

namespace lamina {
namespace {

constexpr Pass passes[] = {Pass::forward, Pass::backward_params, Pass::backward_data};
constexpr double hopeless_factor = 4, hopeless_seconds = 0.01;  // beyond what noise does, and worth the saving

std::size_t index_of(Pass pass) { return static_cast<std::size_t>(pass); }

/// One algorithm in a race, with the rest of the unit by rule or name.
struct Contestant {
  std::string algorithm;
  Lowered lowered;
  Args args;
  Rounds rounds;
  bool out = false;
  std::string refused{};  ///< why it broke off, or nothing

  void run(Pass pass) const {
    for (const Lowered::Step& step : lowered.steps)
      if (step.covers(pass)) step.kernel->run(args);
  }
};

std::string algorithm_of(const Lowered& lowered, Pass pass) {
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) return step.algorithm;
  return {};
}

std::size_t workspace_of(const Lowered& lowered, Pass pass) {
  std::size_t bytes = 0;
  for (const Lowered::Step& step : lowered.steps)
    if (step.covers(pass)) bytes = std::max(bytes, step.kernel->workspace_bytes());
  return bytes;
}

/// Normal numbers in every tensor, gaps included. Zeros or what was left in the memory could take another time.
void fill(Device& device, const Spec& spec, void* lent, std::size_t tensors_bytes) {
  constexpr std::size_t block = 1 << 16;
  std::vector<double> numbers(block);
  fill_normal(numbers, 1);
  const std::size_t size = size_of(spec.y.dtype), count = tensors_bytes / size;
  for (std::size_t at = 0; at < count; at += block) {
    const std::size_t here = std::min(block, count - at);
    Tensor piece{static_cast<char*>(lent) + at * size, {1, 1, 1, static_cast<int>(here)}, spec.y.dtype};
    piece.pitch = static_cast<std::int64_t>(here);
    upload(device, piece, std::span<const double>(numbers).first(here));
  }
}

std::string lacks(std::size_t needed, std::size_t lent) {
  return "needs " + std::to_string(needed) + " bytes to be measured in, of which " + std::to_string(lent) + " are lent";
}

/// Seconds of the device, its launches hidden: else small units would be ranked by their number of calls.
double timed(Timer& timer, HeldLaunches& held, const Contestant& contestant, Pass pass) {
  if (pass == Pass::forward) contestant.run(Pass::prepare);  // the others prepared theirs in the same place
  held.run(timer, [&] {
    timer.start();
    contestant.run(pass);
    timer.stop();
  });
  return timer.seconds();
}

void drop(Contestant& contestant, const char* reason) {
  contestant.out = true;
  contestant.refused = reason;
}

void race(std::vector<Contestant>& all, Pass pass, Timer& timer, HeldLaunches& held) {
  if (pass != Pass::forward) {  // which reads y, and what forward leaves for it
    all.front().run(Pass::prepare);
    all.front().run(Pass::forward);
  }
  for (std::size_t round = 0; round <= race_rounds; ++round) {
    double fastest = no_bound;
    std::vector<double> seconds(all.size(), 0);
    for (std::size_t k = 0; k < all.size(); ++k) {
      const std::size_t i = round % 2 == 0 ? k : all.size() - 1 - k;
      if (all[i].out) continue;
      try {
        seconds[i] = timed(timer, held, all[i], pass);
        fastest = std::min(fastest, seconds[i]);
      } catch (const Unsupported& error) {
        drop(all[i], error.what());
      } catch (const OutOfMemory& error) {
        drop(all[i], error.what());
      }
    }
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].out) continue;
      if (round > 0) all[i].rounds.push_back(seconds[i]);
      // The first one stays: the others are held against it.
      all[i].out = i > 0 && seconds[i] > hopeless_seconds && seconds[i] > hopeless_factor * fastest;
    }
  }
}

/// The rule's pick, and every other algorithm; those that the backend refuses, or the memory has no room for, are out.
std::vector<Contestant> contestants(Backend& backend, const Spec& spec, const Choice& by_rule, const Lowered& rules,
                                    Pass pass, std::size_t lent_bytes) {
  std::vector<Contestant> all;
  all.push_back({algorithm_of(rules, pass), rules, {}, {}});
  for (const std::string& name : backend.algorithms(spec, pass)) {
    if (name == all.front().algorithm) continue;
    Choice named = by_rule;
    named.algorithm[index_of(pass)] = name;
    try {
      Lowered lowered = backend.lower(spec, named);
      const std::size_t needed = lend_unit(spec, lowered, nullptr).bytes;
      all.push_back({name, std::move(lowered), {}, {}});
      if (needed > lent_bytes) drop(all.back(), lacks(needed, lent_bytes).c_str());
    } catch (const Unsupported& error) {  // it cannot do the unit, or breaks a limit
      all.push_back({name, {}, {}, {}, true, error.what()});
    } catch (const OutOfMemory& error) {
      all.push_back({name, {}, {}, {}, true, error.what()});
    } catch (const UsageError& error) {  // the environment makes it compute otherwise than asked
      all.push_back({name, {}, {}, {}, true, error.what()});
    }
  }
  return all;
}

bool beats(const Rounds& challenger, const Rounds& leader) {
  if (challenger.size() < race_rounds) return false;
  std::size_t lost = 0;
  for (std::size_t i = 0; i < race_rounds; ++i) lost += challenger[i] < leader[i] ? 0 : 1;
  const auto median = [](Rounds rounds) {
    std::sort(rounds.begin(), rounds.end());
    return rounds[rounds.size() / 2];
  };
  return lost <= lost_rounds && median(challenger) < median(leader);
}

/// All that a race saw: the one to take first, then the others that came to the end, those that stopped, the refused.
Measured rank(const Spec& spec, Pass pass, std::vector<Contestant>& all) {
  const auto place = [](const Contestant& one) { return !one.refused.empty() ? 2 : one.out ? 1 : 0; };
  std::stable_sort(all.begin(), all.end(),
                   [&](const Contestant& a, const Contestant& b) { return place(a) < place(b); });
  std::vector<Rounds> rounds;
  for (const Contestant& one : all)
    if (place(one) == 0) rounds.push_back(one.rounds);
  const auto lead = static_cast<std::ptrdiff_t>(winner(rounds));
  std::rotate(all.begin(), all.begin() + lead, all.begin() + lead + 1);
  Measured measured{spec, pass, {}};
  const Rounds& first = all.front().rounds;
  for (const Contestant& one : all) {
    Timing timing{one.algorithm, one.refused.empty() ? one.rounds : Rounds{}, 0, false, one.refused};
    if (one.refused.empty()) timing.workspace_bytes = workspace_of(one.lowered, pass);
    timing.tied = &one != &all.front() && !one.out && !first.empty() && !beats(first, one.rounds);
    measured.timings.push_back(std::move(timing));
  }
  return measured;
}

std::string reasons(const Measured& measured) {
  std::string all;
  for (const Timing& timing : measured.timings)
    all += (all.empty() ? "" : "; ") + timing.algorithm + ": " + timing.refused;
  return all;
}

bool has_pass(const Spec& spec, Pass pass) {
  if (pass == Pass::forward) return true;
  const bool wants_dx = !spec.wants_dx.empty() && spec.wants_dx[0];
  return spec.mode == Mode::training && (pass == Pass::backward_params || wants_dx);
}

/// Whether a pass is open for which the backend knows more than one algorithm.
bool leaves_open(const Backend& backend, const Spec& spec, const Choice& choice) {
  return std::any_of(std::begin(passes), std::end(passes), [&](Pass pass) {
    return has_pass(spec, pass) && choice.algorithm[index_of(pass)].empty() &&
           backend.algorithms(spec, pass).size() > 1;
  });
}

}  // namespace

std::size_t winner(const std::vector<Rounds>& contestants) {
  std::size_t leader = 0;
  for (std::size_t i = 1; i < contestants.size(); ++i)
    if (beats(contestants[i], contestants[leader])) leader = i;
  return leader;
}

bool Measured::refused(const std::string& algorithm) const {
  return std::any_of(timings.begin(), timings.end(),
                     [&](const Timing& one) { return one.algorithm == algorithm && !one.refused.empty(); });
}

MeasuredChoice measure_in_turns(Backend& backend, const Spec& spec, const Choice& choice, void* lent,
                                std::size_t lent_bytes, const std::function<void(Measured)>& seen) {
  Choice by_rule = choice;
  by_rule.measure = false;
  if (!leaves_open(backend, spec, choice)) return {by_rule};

  const std::string unit = std::string(backend.name()) + ": " + to_string(spec.op) + ": ";
  Lowered rules = backend.lower(spec, by_rule);
  if (const std::size_t needed = lend_unit(spec, rules, nullptr).bytes; lent == nullptr || needed > lent_bytes)
    throw Unsupported(unit + lacks(needed, lent_bytes));
  Device& device = backend.device();
  fill(device, spec, lent, lend_unit(spec, rules, nullptr).tensors_bytes);
  const std::unique_ptr<Timer> timer = device.timer();
  HeldLaunches held(device);
  MeasuredChoice taken{by_rule};
  for (const Pass pass : passes) {
    std::string& name = taken.choice.algorithm[index_of(pass)];
    if (!name.empty() || algorithm_of(rules, pass).empty()) continue;
    std::vector<Contestant> all = contestants(backend, spec, by_rule, rules, pass, lent_bytes);
    const bool alone = std::count_if(all.begin(), all.end(), [](const Contestant& one) { return !one.out; }) == 1;
    for (Contestant& one : all)
      if (!one.out) one.args = lend_unit(spec, one.lowered, lent).args;
    if (!alone) race(all, pass, *timer, held);
    const std::string rule = all.front().algorithm;
    Measured measured = rank(spec, pass, all);
    if (const Timing& first = measured.timings.front(); !first.refused.empty())
      throw Unsupported(unit + std::string(to_string(pass)) + ": nothing could be measured: " + reasons(measured));
    name = measured.timings.front().algorithm;
    for (const Timing& timing : measured.timings)
      if (timing.tied) taken.tied[index_of(pass)].push_back(timing.algorithm);
    if (measured.refused(rule)) {  // it is of no use to the passes behind, which run it too
      by_rule.algorithm[index_of(pass)] = name;
      rules = backend.lower(spec, by_rule);
    }
    if (seen) seen(std::move(measured));
  }
  return taken;
}

MeasuredChoices::MeasuredChoices(const std::string& file) {
  if (!file.empty()) cache_.emplace(file);
}

MeasuredChoice MeasuredChoices::measure(Backend& backend, const Spec& spec, const Choice& choice, void* lent,
                                        std::size_t lent_bytes) {
  return measure(backend, spec, choice, [&] { return measure_in_turns(backend, spec, choice, lent, lent_bytes); });
}

MeasuredChoice MeasuredChoices::measure(Backend& backend, const Spec& spec, const Choice& choice,
                                        const std::function<MeasuredChoice()>& measured) {
  if (!cache_ || !leaves_open(backend, spec, choice)) return measured();
  MeasuredChoice taken = cache_->find_or_measure(backend, spec, choice, measured);
  taken.choice.measure = false;
  return taken;
}

std::string MeasuredChoices::measure(const InstructionSetKey& key, const std::function<std::string()>& measured) {
  return cache_ ? cache_->find_or_measure(key, measured) : measured();
}

}  // namespace lamina
