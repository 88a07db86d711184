// The choice of a whole unit: one race for each open pass. A tuner makes this choice once for each key of its cache.

#include "measure_in_turns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lamina/error.h"
#include "lib/core/units/spec_passes.h"
#include "lib/core/units/unit_memory.h"

namespace lamina {
namespace {

std::string reasons(const LayerTuning& tuning) {
  std::string all;
  for (const LayerTuning::Candidate& one : tuning.candidates)
    all += (all.empty() ? "" : "; ") + one.algorithm + ": " + one.refused;
  return all;
}

class RacingTuner final : public Tuner {
 public:
  explicit RacingTuner(const std::filesystem::path& file) {
    if (!file.empty()) cache_.emplace(file);
  }

  MeasuredChoice measure(Backend& backend, const Spec& spec, const Choice& choice, void* buffer,
                         std::size_t buffer_bytes) override {
    const auto race = [&] { return measure_in_turns(backend, spec, choice, buffer, buffer_bytes); };
    if (!cache_ || !leaves_open(backend, spec, choice)) return race();
    MeasuredChoice taken = cache_->find_or_measure(backend, spec, choice, race);
    taken.choice.measure = false;
    return taken;
  }

 private:
  std::optional<ChoiceCache> cache_;
};

}  // namespace

std::string lacks(std::size_t needed, std::size_t buffer) {
  return "needs " + std::to_string(needed) + " bytes for its measurement, and gets " + std::to_string(buffer);
}

bool leaves_open(const Backend& backend, const Spec& spec, const Choice& choice) {
  return std::any_of(std::begin(algorithm_passes), std::end(algorithm_passes), [&](Pass pass) {
    return wants(spec, pass) && choice.algorithm[index_of(pass)].empty() && backend.algorithms(spec, pass).size() > 1;
  });
}

MeasuredChoice measure_in_turns(Backend& backend, const Spec& spec, const Choice& choice, void* buffer,
                                std::size_t buffer_bytes, const std::function<void(LayerTuning)>& seen) {
  Choice others = choice;  // for the passes that a race does not measure
  others.measure = false;
  if (!leaves_open(backend, spec, choice)) return {others};

  const std::string unit = std::string(backend.name()) + ": " + to_string(spec.op) + ": ";
  const Lowered rules = backend.lower(spec, others);
  if (const std::size_t needed = bind_in_buffer(spec, rules, nullptr).bytes; buffer == nullptr || needed > buffer_bytes)
    throw Unsupported(unit + lacks(needed, buffer_bytes));
  MeasuredChoice taken{others};
  for (const Pass pass : algorithm_passes) {
    std::string& name = taken.choice.algorithm[index_of(pass)];
    const Lowered::Step* rule = find_step(rules, pass);
    if (!name.empty() || rule == nullptr) continue;
    TuningRules with;
    with.rule = rule->algorithm;
    with.before_run = backend.while_planning;
    LayerTuning tuning = tune(backend, spec, pass, others, buffer, buffer_bytes, with);
    if (!tuning.picked.best) {
      const std::string why = unit + std::string(to_string(pass)) + ": nothing could be measured: " + reasons(tuning);
      if (std::ranges::any_of(tuning.candidates, &LayerTuning::Candidate::failed)) throw DeviceError(why);
      throw Unsupported(why);
    }
    name = tuning.candidates[*tuning.picked.best].algorithm;
    for (const std::size_t i : tuning.picked.ties) taken.tied[index_of(pass)].push_back(tuning.candidates[i].algorithm);
    // Tuning the other passes also runs this pass, so its algorithm must be able to run.
    if (!tuning.candidates.front().refused.empty()) others.algorithm[index_of(pass)] = name;
    if (seen) seen(std::move(tuning));
  }
  return taken;
}

std::shared_ptr<Tuner> make_tuner(const std::filesystem::path& choice_cache) {
  return std::make_shared<RacingTuner>(choice_cache);
}

}  // namespace lamina
