// The choice of a whole unit: one race for each pass that is open.

#include "measure_in_turns.h"

#include <algorithm>
#include <utility>

#include "lamina/error.h"
#include "lib/core/units/spec_passes.h"
#include "lib/core/units/unit_memory.h"
#include "measured_unit.h"

namespace lamina {
namespace {

constexpr Pass passes[] = {Pass::forward, Pass::backward_params, Pass::backward_data};

std::size_t index_of(Pass pass) { return static_cast<std::size_t>(pass); }

std::string reasons(const LayerTuning& tuning) {
  std::string all;
  for (const LayerTuning::Candidate& one : tuning.candidates)
    all += (all.empty() ? "" : "; ") + one.algorithm + ": " + one.refused;
  return all;
}

}  // namespace

bool leaves_open(const Backend& backend, const Spec& spec, const Choice& choice) {
  return std::any_of(std::begin(passes), std::end(passes), [&](Pass pass) {
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
  for (const Pass pass : passes) {
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

}  // namespace lamina
