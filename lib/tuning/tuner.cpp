// The tuner of plans: races, whose answers a file keeps.

#include <optional>

#include "lamina/choice_cache.h"
#include "lamina/tuning.h"
#include "measure_in_turns.h"

namespace lamina {
namespace {

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

std::shared_ptr<Tuner> make_tuner(const std::filesystem::path& choice_cache) {
  return std::make_shared<RacingTuner>(choice_cache);
}

}  // namespace lamina
