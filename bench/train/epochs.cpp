// What rows of epochs have.

#include "epochs.h"

#include <cmath>

namespace lamina::bench {

std::int64_t samples_of(const PreparedWorkload& ready) {
  const std::int64_t count = ready.training->count(), batch = ready.graph.node("labels").shape.n;
  return ready.options.drop_last ? count / batch * batch : count;
}

std::map<std::string, double> epoch_fields(const EpochResult& epoch, std::int64_t samples) {
  std::map<std::string, double> fields = {{"epoch", static_cast<double>(epoch.epoch)},
                                          {"samples", static_cast<double>(samples)},
                                          {"loss", epoch.training.loss},
                                          {"accuracy", epoch.training.accuracy},
                                          {"validation_loss", epoch.validation.loss},
                                          {"validation_accuracy", epoch.validation.accuracy}};
  if (!std::isnan(epoch.validation.loss)) fields["validation_seconds"] = epoch.validation_seconds;
  const double training_seconds = epoch.seconds - epoch.validation_seconds;
  if (training_seconds > 0) fields["samples_per_second"] = static_cast<double>(samples) / training_seconds;
  std::erase_if(fields, [](const auto& field) { return !std::isfinite(field.second); });
  return fields;
}

}  // namespace lamina::bench
