// A backend whose algorithms take times that a test sets.

#include "tests/tune/race_backend.h"

#include <cmath>
#include <cstring>

namespace lamina::test {
namespace {

bool holds_numbers(const Tensor& tensor) {
  double sum = 0;
  for (std::int64_t i = 0; i < tensor.shape.count(); ++i) sum += std::abs(static_cast<double>(tensor.as<float>()[i]));
  return std::isfinite(sum) && sum > 0.1 * static_cast<double>(tensor.shape.count());
}

void leave_name(const Way& way, void* prepared) {
  std::memset(prepared, 0, way.prepared_bytes);
  std::memcpy(prepared, way.name.data(), way.name.size());
}

}  // namespace

std::vector<std::string> RaceBackend::algorithms(const Spec& spec, Pass) const {
  if (!std::holds_alternative<Conv>(spec.op)) return {"direct"};
  std::vector<std::string> names;
  for (const Way& way : ways_) names.push_back(way.name);
  return names;
}

Lowered::Step RaceBackend::step_of(const Way& way, const Spec& spec, Pass pass) {
  const bool wants_dx = spec.wants_dx.at(0);
  Lowered::Step made = step(
      {pass}, way.name,
      [this, way, pass, wants_dx](const Args& args) {
        const std::string what = std::string(to_string(pass)) + " " + way.name;
        log.push_back(what);
        device_.launch(way.launch_seconds, way.seconds(runs_of_[what]++));
        const auto expect = [&](bool held, const char* text) {
          if (!held) faults.push_back(what + ": " + text);
        };
        expect(holds_numbers(args.x.at(0)) && holds_numbers(args.w.at(0)), "x and w hold no numbers");
        if (pass == Pass::forward && way.prepared_bytes > 0)
          expect(std::strcmp(static_cast<const char*>(args.prepared), way.name.c_str()) == 0, "prepared by another");
        if (pass != Pass::forward) expect(holds_numbers(args.dy), "dy holds no numbers");
        expect(static_cast<bool>(args.dx.at(0)) == wants_dx, "dx is missing, or not wanted");
        expect(reinterpret_cast<std::uintptr_t>(args.workspace) % 256 == 0, "the workspace is not aligned");
        std::memset(args.workspace, 0xFF, way.workspace_bytes);
      },
      way.workspace_bytes);
  made.deterministic = way.deterministic;
  return made;
}

Lowered RaceBackend::lower(const Spec& spec, const Choice& choice) {
  if (!std::holds_alternative<Conv>(spec.op)) return empty_unit(spec);
  Lowered lowered = product_flags(spec);
  for (const Pass pass : product_passes(spec)) {
    std::vector<Alternative> alternatives;
    for (const Way& way : ways_)
      alternatives.push_back({way.name, way.max_error, [&, pass] { return step_of(way, spec, pass); }});
    lowered.steps.push_back(pick("race", pass, choice, alternatives));
  }
  for (const Way& way : ways_) {
    if (way.name != lowered.steps[0].algorithm || way.prepared_bytes == 0) continue;
    lowered.prepared_bytes = way.prepared_bytes;
    lowered.steps.push_back(
        step({Pass::prepare}, way.name, [way](const Args& args) { leave_name(way, args.prepared); }));
  }
  return lowered;
}

}  // namespace lamina::test
