// Turns networks into units, units into distinct graphs, and asks cuDNN about the graphs. Two child processes ask each
// cuDNN, one with TF32 and one without, because a process loads one cuDNN, which reads NVIDIA_TF32_OVERRIDE once.

#include "questions.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "bench/measure/session.h"
#include "lamina/cudnn_engines.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

/// The index of the query for a row's graph, which is added if it is new. The query counts the units that use it.
std::size_t ask_once(std::vector<Query>& queries, const GraphRow& row, std::string graph, const std::string& network) {
  auto same = std::find_if(queries.begin(), queries.end(), [&](const Query& q) { return q.graph == graph; });
  if (same == queries.end()) same = queries.insert(same, {row.spec, row.pass, std::move(graph)});
  if (same->uses.empty() || same->uses.back()["network"] != network)
    same->uses.push_back({{"network", network}, {"unit", row.unit}, {"units", 0}});
  same->uses.back()["units"] = same->uses.back()["units"].get<int>() + 1;
  return static_cast<std::size_t>(same - queries.begin());
}

/// The table of a network. Adds to `known` all layers that have a graph, also those that --layer does not name.
GraphTable table_of(const Config& c, const Graph& graph, const EnginesOptions& options, std::vector<Query>& queries,
                    std::set<std::string>& known) {
  GraphTable table{fmt::format("{}, batch {}, {}", c.network, c.batch, to_string(c.layout))};
  const auto name_of = [&](int node) { return graph.nodes()[static_cast<std::size_t>(node)].name; };
  const auto is_wanted = [&](int node) {
    return std::ranges::find(options.layers, name_of(node)) != options.layers.end();
  };
  std::vector<GraphRow> all;  // a row for each pass of each unit, which all types share
  for (const DType dtype : options.configs.dtypes) {
    const Options plan{.mode = options.plan.options.mode, .dtype = dtype, .layout = c.layout, .input_gradient = true};
    std::size_t at = 0;
    for (const PlannedUnit& unit : cudnn_graph_units(graph, plan)) {
      const bool wanted = options.layers.empty() || std::ranges::any_of(unit.nodes, is_wanted);
      for (const auto& [spec, pass] : cudnn_graphs(unit.spec)) try {
          std::string text = cudnn_graph(spec, pass);
          for (const int node : unit.nodes) known.insert(name_of(node));
          if (!wanted) continue;
          GraphRow row{name_of(unit.nodes.front()), spec, pass};
          const std::size_t number = ask_once(queries, row, std::move(text), c.network);
          if (at == all.size()) all.push_back(std::move(row));
          all[at++].queries.push_back(number);
        } catch (const Unsupported&) {
          if (wanted && !std::holds_alternative<Input>(unit.spec.op)) table.without.emplace(op_name(unit.spec.op));
        }
    }
  }
  for (GraphRow& row : all) {
    const auto same =
        std::find_if(table.rows.begin(), table.rows.end(), [&](const GraphRow& r) { return r.queries == row.queries; });
    if (same == table.rows.end())
      table.rows.push_back(std::move(row));
    else
      ++same->units;
  }
  return table;
}

Json to_json(const CudnnEngine& engine) {
  Json knobs = Json::object();
  for (const CudnnEngine::Knob& knob : engine.knobs) knobs[knob.name] = knob.value;
  return {{"engine", engine.index},
          {"list", engine.fallback ? "fallback" : "a"},
          {"notes", engine.notes},
          {"knobs", knobs},
          {"workspace_bytes", engine.workspace_bytes}};
}

/// The message of a child process: its answers, or the reason why it has none. Reports only the first wrong file in the
/// folder of plans.
Json answers(const std::string& directory, const std::string& properties, bool tf32, const std::vector<Query>& queries,
             const EnginesOptions& options) {
  try {
    const CudnnEngines cudnn(directory, properties);
    bool complained = false;
    int plans = 0, loaded = 0;
    Json lists = Json::array();
    for (const Query& query : queries) {
      Json& list = lists.emplace_back(Json::array());
      if (!tf32 && query.spec.y.dtype != DType::f32) continue;
      int compiled = 0;
      bool enough = options.build == BuildPlans::none;
      for (const CudnnEngine& engine : cudnn.list(query.spec, query.pass)) {
        if (!tf32 && !engine.strict()) continue;
        Json& said = list.emplace_back(to_json(engine));
        if (enough || (engine.has("runtime_compilation") && ++compiled > 3)) continue;
        const CudnnPlan plan = cudnn.build(query.spec, query.pass, engine, options.backends.plans);
        if (!plan.complaint.empty() && !std::exchange(complained, true))
          fmt::print(stderr, "{}; it is made anew, and others may be, too\n", plan.complaint);
        ++plans;
        loaded += plan.from_folder ? 1 : 0;
        if (plan.refused.empty())
          said["plan"] = {{"workspace_bytes", plan.workspace_bytes}, {"bytes", plan.bytes}};
        else
          said["refused"] = plan.refused;
        enough = options.build == BuildPlans::first && plan.refused.empty();
      }
    }
    const bool driver = ::dlopen("libcuda.so.1", RTLD_LAZY) != nullptr;
    return {{"cudnn", {{"version", cudnn.version()}, {"directory", cudnn.directory()}, {"driver", driver}}},
            {"plans", plans},
            {"loaded", loaded},
            {"engines", lists}};
  } catch (const UsageError& error) {
    return {{"wrong_use",
             fmt::format("--device={}: {}; bench/devices/h200.json has all keys", options.device, error.what())}};
  } catch (const LoadError& error) {
    return {{"failed", fmt::format("{} (--cudnn=DIR; bench/get-cudnn 9.19 brings one)", error.what())}};
  } catch (const std::exception& error) {
    return {{"failed", error.what()}};
  }
}

/// A process that asks cuDNN, and the file to which it writes its answer.
struct Child {
  pid_t process;
  std::unique_ptr<FILE, int (*)(FILE*)> answer;
};

Child start(const std::string& directory, const std::string& properties, bool tf32, const std::vector<Query>& queries,
            const EnginesOptions& options) {
  std::fflush(nullptr);
  Child child{-1, {std::tmpfile(), &std::fclose}};
  if (child.answer != nullptr) child.process = ::fork();
  if (child.process < 0)
    throw Error(fmt::format("cannot ask cuDNN: {}: {}", child.answer ? "fork" : "tmpfile", std::strerror(errno)));
  if (child.process > 0) return child;
  if (tf32)
    ::unsetenv("NVIDIA_TF32_OVERRIDE");
  else
    ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const std::string text =
      answers(directory, properties, tf32, queries, options).dump(-1, ' ', true, Json::error_handler_t::replace);
  const bool written = std::fputs(text.c_str(), child.answer.get()) >= 0 && std::fflush(child.answer.get()) == 0;
  ::_exit(written ? 0 : 1);
}

Json answer_of(const Child& child) {
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    return {{"failed", fmt::format("cuDNN ended the process that asked it, with signal {} ({})", WTERMSIG(status),
                                   ::strsignal(WTERMSIG(status)))}};
  std::rewind(child.answer.get());
  const Json answer = Json::parse(child.answer.get(), nullptr, false);
  return answer.is_object() ? answer : Json::object();
}

}  // namespace

std::string ops_text(const Spec& spec) {
  std::string text = to_string(spec.op);
  for (const Op& op : spec.tail) text += " + " + std::string(op_name(op));
  return text;
}

std::string pass_text(const Spec& spec, Pass pass) {
  return std::string(to_string(pass)) + (spec.masks_dx ? "+fused" : "");
}

Questions questions_of(const EnginesOptions& options) {
  Questions asked;
  std::set<std::string> known;
  for (const std::string& name : options.networks) {
    const Network its = network(name, options.net);
    for (const int batch : its.layer != nullptr ? std::vector{its.layer->x.n} : options.configs.batches)
      for (const Layout layout : options.configs.layouts) {
        const Config config{its.name, "", DType::f32, layout, batch};
        asked.tables.push_back(table_of(config, graph_of(config, options.net), options, asked.queries, known));
      }
  }
  for (const std::string& layer : options.layers)
    if (!known.contains(layer))
      throw UsageError(
          fmt::format("--layer: no layer \"{}\": {}", layer, near_names(layer, {known.begin(), known.end()})));
  return asked;
}

Answers ask(const std::string& directory, const std::string& properties, const std::vector<Query>& queries,
            const EnginesOptions& options) {
  const Child with = start(directory, properties, true, queries, options);
  const Child without = start(directory, properties, false, queries, options);
  Answers all = {answer_of(with), answer_of(without)};
  for (const Json& answer : all) {
    if (answer.contains("wrong_use")) throw UsageError(answer["wrong_use"].get<std::string>());
    if (!answer.contains("engines"))
      throw Error(answer.value("failed", "the process that asked cuDNN ended without an answer"));
  }
  return all;
}

}  // namespace lamina::bench
