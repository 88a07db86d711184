// Choices that are measured once per machine.

#include "measured_choices.h"

#include "measure_in_turns.h"

namespace lamina {

MeasuredChoices::MeasuredChoices(const std::string& file) {
  if (!file.empty()) cache_.emplace(file);
}

MeasuredChoice MeasuredChoices::measure(Backend& backend, const Spec& spec, const Choice& choice, void* buffer,
                                        std::size_t buffer_bytes) {
  return measure(backend, spec, choice, [&] { return measure_in_turns(backend, spec, choice, buffer, buffer_bytes); });
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
