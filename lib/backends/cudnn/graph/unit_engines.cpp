// Engines as algorithms: their names, which of them a choice refuses, and the kernel that executes a plan.

#include "unit_engines.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include "lamina/error.h"
#include "lib/backends/common/lowering.h"
#include "lib/backends/cudnn/library/common.h"
#include "lib/core/numbers/rounding.h"
#include "operations.h"

namespace lamina::cudnn::graph {
namespace {

constexpr std::uintptr_t tensor_alignment_bytes = 16;  // as operations.cpp declares it

/// A plan bound to its arguments: the pack of their addresses is made once.
class BoundEngine final : public Kernel {
 public:
  BoundEngine(PlanRef plan, const Around& around, const Args& args)
      : plan_(std::move(plan)), around_(around), pack_(plan_->plan->api(), variant_pack) {
    std::vector<void*> pointers;
    for (const std::int64_t id : plan_->tensors) {
      const void* const data = around_.place(id, args, own(args));
      wanted_ = wanted_ && data != nullptr;
      const bool by_value = id == id_epsilon || id == id_momentum || id == id_zero;
      if (reinterpret_cast<std::uintptr_t>(data) % tensor_alignment_bytes != 0 && !by_value)
        throw UsageError("cudnn-graph: tensor " + std::to_string(id) + " is not at a multiple of 16 bytes");
      pointers.push_back(const_cast<void*>(data));
    }
    if (!wanted_) return;
    if (plan_->handle == nullptr) throw UsageError("cudnn-graph: a plan that was made without a device cannot run");
    const auto count = static_cast<std::int64_t>(pointers.size());
    pack_.set(pack_ids, type_int64, count, plan_->tensors.data());
    pack_.set(pack_pointers, type_pointer, count, static_cast<const void*>(pointers.data()));
    pack_.set(pack_workspace, type_pointer, 1, static_cast<const void*>(&args.workspace));
    pack_.finalize();
  }

  void run(const Args& args) override {
    if (around_.before) around_.before(args, own(args));
    if (wanted_) LAMINA_CUDNN(pack_.api(), BackendExecute, plan_->handle, plan_->plan->object(), pack_.object());
    if (around_.after) around_.after(args, own(args));
  }

 private:
  void* own(const Args& args) const { return static_cast<char*>(args.workspace) + aligned(plan_->workspace_bytes); }

  PlanRef plan_;
  Around around_;
  Descriptor pack_;
  bool wanted_ = true;
};

class EngineKernel final : public Kernel {
 public:
  EngineKernel(PlanRef plan, Around around) : plan_(std::move(plan)), around_(std::move(around)) {}
  std::size_t workspace_bytes() const override {
    return around_.own_bytes == 0 ? plan_->workspace_bytes : aligned(plan_->workspace_bytes) + around_.own_bytes;
  }
  std::shared_ptr<Kernel> bind(const Args& args) override {
    return std::make_shared<BoundEngine>(plan_, around_, args);
  }
  void run(const Args& args) override { bind(args)->run(args); }

 private:
  PlanRef plan_;
  Around around_;
};

bool is_engine(const std::string& name) { return name.starts_with(engine_prefix); }
bool is_fused(const Spec& spec, Pass pass) { return pass == Pass::backward_data && spec.masks_dx; }

/// The engine that a name describes by its number and knobs.
CudnnEngine parsed(const std::string& name) {
  const auto wrong = [&](const std::string& why) {
    return UsageError("cudnn-graph: '" + name + "' names no engine: " + why);
  };
  const auto number = [&](const std::string& text) {
    std::int64_t value = 0;
    const char* const end = text.data() + text.size();
    if (const auto read = std::from_chars(text.data(), end, value); read.ec != std::errc() || read.ptr != end)
      throw wrong("'" + text + "' is no number");
    return value;
  };
  const std::size_t behind = engine_prefix.size() + (name.ends_with(fused_suffix) ? fused_suffix.size() : 0);
  std::istringstream rest(name.substr(engine_prefix.size(), name.size() - behind));
  std::string word;
  std::getline(rest, word, ':');
  CudnnEngine engine{number(word), false, {}, {}, 0};
  const std::vector<std::string> names = words(knobs);
  while (std::getline(rest, word, ':')) {
    const std::string knob = word.substr(0, word.find('='));
    if (knob == word) throw wrong("'" + word + "' is no knob=value");
    const auto known = std::ranges::find(names, knob);
    const std::int64_t its = known != names.end() ? known - names.begin() : number(knob);
    engine.knobs.push_back({knob, number(word.substr(knob.size() + 1)), static_cast<int>(its)});
  }
  return engine;
}

/// Why the math of a choice excludes an engine, or empty. An engine that rounds to 16 bits is neither strict nor TF32.
std::string math_refusal(const CudnnEngine& engine, DType values, Math math) {
  if (engine.has("reduced_precision_reduction")) return "rounds sums to a shorter type";
  if (values != DType::f32) return {};
  if (engine.has("down_convert_inputs")) return "rounds inputs to a shorter type";
  return math == Math::strict && engine.has("tensor_core") ? "takes tensor cores, not strict math" : "";
}

}  // namespace

Lowered::Step engine_step(std::vector<Pass> passes, const TakenEngine& taken, const Around& around) {
  Lowered::Step step{{std::move(passes), taken.name}, std::make_shared<EngineKernel>(taken.plan, around)};
  step.deterministic = taken.deterministic;
  step.math = taken.math;
  return step;
}

const void* usual_place(std::int64_t id, const Args& args, void*) {
  switch (id) {
    case id_x: return args.x.at(0).data;
    case id_addend: return args.x.at(1).data;
    case id_w: return args.w.at(0).data;
    case id_bias: return args.w.at(1).data;
    case id_y: return args.y.data;
    case id_dy: return args.dy.data;
    case id_dx: return args.dx.at(0).data;
    case id_index: return args.saved;
    default: throw UsageError("cudnn-graph: no place for tensor " + std::to_string(id));
  }
}

void UnitEngines::complain(Lowered::Step& step) {
  if (!complaint_ || complaint_->empty()) return;
  step.reason += "; " + *complaint_ + "; it is made anew, and others may be, too";
  complaint_->clear();
}

std::string UnitEngines::describe() const {
  return "engines of its graphs for conv, fully_connected, batch_norm, relu, add and pools, other ops as in cudnn" +
         (kept_.folder().empty() ? "" : ", plans in " + kept_.folder().string());
}

const Target& UnitEngines::target(Session& session) {
  if (target_) return *target_;
  const Api& api = session.api();
  if (session.has_device()) return target_.emplace(api, session.handle());
  if (json_.empty()) throw Unsupported("there is neither a device nor a file of its properties");
  check_version(api, true);
  return target_.emplace(api, json_);
}

UnitEngines::Known& UnitEngines::list(const Spec& spec, Pass pass, Session& session) {
  if (!is_dense(spec)) throw Unsupported("its tensors have gaps");
  Known listed{operation_graph_of(spec, pass)};
  const std::string line = to_string(*listed.graph);
  if (const auto known = known_.find(line); known != known_.end()) return known->second;
  std::map<std::int64_t, int> times;
  for (CudnnEngine& engine : proposals(target(session), *listed.graph)) {
    const int time = ++times[engine.index];
    std::string name = std::string(engine_prefix) + std::to_string(engine.index);
    if (time > 1) name += "#" + std::to_string(time);
    if (is_fused(spec, pass)) name += fused_suffix;
    listed.engines.emplace_back(std::move(name), std::move(engine));
  }
  session.check_parts(Use::query);
  return known_.emplace(line, std::move(listed)).first->second;
}

PlanRef UnitEngines::build(Known& of, const std::string& name, const CudnnEngine& engine, Session& session) {
  PlanRef& known = of.built[name];
  if (known != nullptr) return known;
  known = std::make_shared<const BuiltPlan>(build_plan(target(session), of.graph, engine, kept_));
  if (!complaint_ && !known->complaint.empty()) complaint_ = known->complaint;
  return known;
}

std::vector<Alternative> UnitEngines::alternatives(const Spec& spec, Pass pass, const Choice& choice, Session& session,
                                                   const MakeStep& make) {
  std::vector<Alternative> all = of_one_graph(spec, pass, choice, session, make);
  if (!is_fused(spec, pass)) return all;
  Spec plain = spec;
  plain.masks_dx = false;
  for (Alternative& each : of_one_graph(plain, pass, choice, session, make)) all.push_back(std::move(each));
  return all;
}

std::vector<Alternative> UnitEngines::of_one_graph(const Spec& spec, Pass pass, const Choice& choice, Session& session,
                                                   const MakeStep& make) {
  const std::string& named = choice.algorithm[static_cast<std::size_t>(pass)];
  const bool fused = is_fused(spec, pass), names_one = is_engine(named) && named.ends_with(fused_suffix) == fused;
  const auto none = [&](const std::string& why) {
    Alternative refused{names_one ? named : "engine" + std::string(fused ? fused_suffix : ""), no_bound, {}};
    refused.refusal = refused.algorithm + ": " + why;
    return std::vector{refused};
  };
  Known* known = nullptr;
  std::vector<std::pair<std::string, CudnnEngine>> engines;
  const auto find_all = [&] {
    known = &list(spec, pass, session);
    engines = known->engines;
    if (names_one && std::ranges::find(engines, named, &decltype(engines)::value_type::first) == engines.end())
      engines.emplace_back(named, with_notes(target(session), known->graph, parsed(named)));
    return true;
  };
  std::string why;
  try {
    if (!attempt(find_all, why)) return none(why);
  } catch (const LoadError& error) {
    if (session.has_device()) throw;
    return none(error.what());
  }
  std::vector<Alternative> all;
  std::size_t by_rule = 0;
  for (const auto& each : engines) {  // no binding: clang-tidy 16 crashes at its members
    const std::string& name = each.first;
    const CudnnEngine& engine = each.second;
    Alternative next{name, no_bound, {}, "cuDNN proposes it"};
    for (const std::string& note : engine.notes)
      next.reason += (&note == &engine.notes.front() ? ", with the notes " : ", ") + note;
    if (const std::string reason = math_refusal(engine, spec.y.dtype, choice.math); !reason.empty())
      next.refusal = name + ": " + reason;
    else if ((fused && engine.fallback) || ++by_rule > most_proposals)  // the plain graph has faster engines
      next.place = by_name_only;
    TakenEngine taken{name, nullptr, !engine.has("nondeterministic"),
                      spec.y.dtype == DType::f32 && engine.has("tensor_core") ? Math::tf32 : Math::strict};
    next.make_step = [this, &session, make, known, engine, taken]() mutable {
      taken.plan = build(*known, taken.name, engine, session);
      if (taken.plan->plan) return make(taken);
      Lowered::Step step;
      step.reason = taken.name + ": " + taken.plan->refused;
      return step;
    };
    all.push_back(std::move(next));
  }
  return all.empty() ? none("the library proposes none") : all;
}

std::vector<std::string> UnitEngines::names(const Spec& spec, Pass pass, Session& session) {
  std::vector<std::string> names;
  if (std::ranges::none_of(cudnn_graphs(spec), [&](const auto& graph) { return graph.second == pass; })) return names;
  for (const Math math : {Math::strict, Math::tf32})
    for (const Alternative& each : alternatives(spec, pass, {.math = math}, session, {}))
      if (each.refusal.empty() && each.place != by_name_only && std::ranges::find(names, each.algorithm) == names.end())
        names.push_back(each.algorithm);
  return names;
}

bool offer_engines(Lowered& unit, const Spec& spec, Pass pass, const Choice& choice, Session& session,
                   const Around& around) {
  const auto step = std::ranges::find_if(unit.steps, [&](const Lowered::Step& each) { return each.covers(pass); });
  if (session.engines == nullptr || step == unit.steps.end()) return false;
  Choice asked = choice;
  std::string& named = asked.algorithm[static_cast<std::size_t>(pass)];
  for (const Pass covered : step->passes)
    if (named.empty() && covered != Pass::recompute) named = choice.algorithm[static_cast<std::size_t>(covered)];
  const auto make = [&](const TakenEngine& taken) { return engine_step(step->passes, taken, around); };
  std::vector<Alternative> all = session.engines->alternatives(spec, pass, asked, session, make);
  all.push_back({step->algorithm, no_bound, [&] { return *step; }, "no engine of cuDNN's graphs runs it"});
  Lowered::Step picked = pick("cudnn: " + to_string(spec.op), pass, asked, all);
  const bool taken = is_engine(picked.algorithm);
  session.engines->complain(picked);
  const auto again = std::ranges::find_if(unit.steps, [](const auto& each) { return each.covers(Pass::recompute); });
  if (taken && pass == Pass::forward && again != unit.steps.end()) {
    again->algorithm = picked.algorithm;
    again->kernel = picked.kernel;
    again->deterministic = picked.deterministic;
  }
  *step = std::move(picked);
  if (taken) (pass == Pass::forward ? unit.y_may_alias_x : unit.dx_may_alias_dy).assign(spec.x.size(), false);
  return taken;
}

}  // namespace lamina::cudnn::graph
