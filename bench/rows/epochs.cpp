// Epochs of a training as rows.

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

void add_joules(nlohmann::ordered_json& to, const std::optional<MeasuredEnergy>& energy) {
  if (!energy) return;
  if (!energy->missing.empty()) {
    to["joules_missing"] = energy->missing;
    return;
  }
  to["joules"] = energy->joules;
  to["joules_window_s"] = energy->window_seconds;
}

nlohmann::ordered_json epoch_row(const RowKey& key, const EpochResult& epoch, const EpochFacts& facts,
                                 std::int64_t samples, int epochs, const std::string& data) {
  const std::string name = to_string(key);
  nlohmann::ordered_json row = {{"name", name},
                                {"family_index", 0},
                                {"per_family_instance_index", 0},
                                {"run_name", name},
                                {"run_type", "iteration"},
                                {"repetitions", epochs},
                                {"repetition_index", epoch.epoch},
                                {"threads", 1},
                                {"iterations", 1},
                                {"real_time", epoch.seconds},
                                {"cpu_time", facts.cpu_seconds},
                                {"time_unit", "s"}};
  for (const auto& [field, value] : epoch_fields(epoch, samples)) row[field] = value;
  add_joules(row, facts.energy);
  row["label"] = data;
  row["key"] = fields_of(key);
  return row;
}

}  // namespace lamina::bench
