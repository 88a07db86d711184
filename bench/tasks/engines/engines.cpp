// The subcommand `engines`: answers of cuDNN as tables, as a file, and compared with the answers of another version.
// Reads the device of --device: a known set of properties, or a file.

#include "engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <ranges>
#include <sstream>

#include "bench/context/build.h"
#include "bench/context/context.h"
#include "bench/tasks/describe.h"
#include "lamina/error.h"
#include "questions.h"

namespace lamina::bench {
namespace {

/// A group of columns: the answers for a type. f32 has two groups: with TF32, and strict.
struct View {
  std::string name;
  std::size_t type;     ///< index of the type in the options
  bool strict = false;  ///< whether to show the answers without TF32
};

std::vector<View> views_of(const EnginesOptions& options) {
  std::vector<View> views;
  for (std::size_t i = 0; i < options.configs.dtypes.size(); ++i) {
    const bool has_tf32 = options.configs.dtypes[i] == DType::f32;
    views.push_back({has_tf32 ? "tf32" : std::string(to_string(options.configs.dtypes[i])), i});
    if (has_tf32) views.push_back({"strict", i, true});
  }
  return views;
}

const Json& list_of(const Answers& answers, const View& view, const GraphRow& row) {
  return answers[view.strict ? 1 : 0]["engines"][row.queries[view.type]];
}

constexpr std::pair<char, const char*> marks[] = {
    {'t', "tensor_core"}, {'d', "down_convert_inputs"}, {'r', "reduced_precision_reduction"}, {'w', "winograd"},
    {'f', "fft"},         {'n', "nondeterministic"},    {'c', "runtime_compilation"}};

constexpr const char* legend =
    "Engines in order of preference, after the bar those of the fallback list; letters: t tensor cores, d inputs\n"
    "rounded to a shorter type, r sums in a shorter type, w Winograd, f FFT, n not the same bits on every run, c\n"
    "compiled at run time; ! no plan of it finalises.\n"
    "Configs: configurations of mode A + of the fallback list. MiB: workspace of the first pick. Plans: of them built, "
    "and tried.\n";

constexpr const char* caution =
    "Asked without a device, whose properties are written by hand. No plan has run on a device. Engine numbers mean "
    "something within one version of cuDNN only.";

constexpr const char* no_driver =
    "\nThere is no libcuda.so.1, which cuDNN {} needs for engines that are compiled at run time. It proposes none of\n"
    "these, so \"none\" says nothing about them. A driver has it; to list engines, a link of this name to\n"
    "lib64/stubs/libcuda.so of a CUDA toolkit will do.\n";

bool is_fallback(const Json& engine) { return engine["list"] == "fallback"; }
bool is_built(const Json& engine) { return engine.contains("plan"); }
bool is_refused(const Json& engine) { return engine.contains("refused"); }

std::string marked(const Json& engine) {
  std::string text = engine["engine"].dump();
  const Json& notes = engine["notes"];
  for (const auto& [letter, note] : marks)
    if (std::find(notes.begin(), notes.end(), note) != notes.end()) text += letter;
  return text + (is_refused(engine) ? "!" : "");
}

/// A list of engines in short: "67t 46t 70 25n". Engines are in the order of their first configuration, and letters
/// stand for the notes of an engine. A bar comes before engines of the fallback list. After six engines follows "..".
std::string ranking(const Json& engines) {
  constexpr std::size_t most = 6;
  std::string text;
  std::vector<Json> seen;
  for (const Json& engine : engines) {
    if (std::find(seen.begin(), seen.end(), engine["engine"]) != seen.end()) continue;
    seen.push_back(engine["engine"]);
    if (seen.size() > most) return text.substr(1) + " ..";
    if (is_fallback(engine) && text.find('|') == text.npos) text += " |";
    text += " " + marked(engine);
  }
  return text.empty() ? "none" : text.substr(1);
}

/// The first engine that is not refused; null if there is none.
const Json* pick_of(const Json& engines) {
  const auto found = std::find_if_not(engines.begin(), engines.end(), is_refused);
  return found == engines.end() ? nullptr : &*found;
}

std::string mebibytes(const Json* engine) {
  if (engine == nullptr) return "";
  const Json& stated = is_built(*engine) ? (*engine)["plan"] : *engine;
  return fmt::format("{:.1f}", stated["workspace_bytes"].get<double>() / mebibyte);
}

std::vector<std::string> cells_of(const GraphRow& row) {
  return {row.unit, std::to_string(row.units), image_text(row.spec.x.front().shape), ops_text(row.spec),
          pass_text(row.spec, row.pass)};
}

TextTable table_with(std::vector<TextTable::Column> more) {
  TextTable table;
  table.columns = {"unit", ">units", "input", "ops", "pass"};
  table.columns.insert(table.columns.end(), more.begin(), more.end());
  return table;
}

/// A table with a row for each graph. For each view: the ranking; the numbers of configurations of mode A and of the
/// fallback list, "36+3"; MiB of workspace; and the numbers of built and of tried plans.
std::string answers_text(const GraphTable& asked, const Answers& answers, const std::vector<View>& views, bool builds) {
  std::vector<TextTable::Column> columns;
  for (const View& view : views) {
    columns.insert(columns.end(), {view.name, ">configs", ">MiB"});
    if (builds) columns.emplace_back(">plans");
  }
  TextTable table = table_with(columns);
  for (const GraphRow& row : asked.rows) {
    std::vector<std::string>& cells = table.rows.emplace_back(cells_of(row));
    for (const View& view : views) {
      const Json& list = list_of(answers, view, row);
      const auto count = [&](auto is) { return std::count_if(list.begin(), list.end(), is); };
      const auto all = std::ssize(list), fallback = count(is_fallback), built = count(is_built);
      cells.insert(cells.end(),
                   {ranking(list), fmt::format("{}+{}", all - fallback, fallback), mebibytes(pick_of(list))});
      if (builds) cells.push_back(fmt::format("{}/{}", built, built + count(is_refused)));
    }
  }
  return asked.title + "\n\n" + table.text();
}

/// The knobs of `engine` that `other` lacks or has with another value: " tile_size=5".
std::string own_knobs(const Json& engine, const Json& other) {
  std::string text;
  for (const auto& [name, value] : engine["knobs"].items())
    if (other["knobs"].value(name, Json()) != value) text += fmt::format(" {}={}", name, value.dump());
  return text;
}

/// A table with a row for each graph whose first pick differs between two versions. Knobs are shown only if nothing
/// else differs.
std::string changes_text(const GraphTable& asked, const Answers& a, const Answers& b, const std::vector<View>& views) {
  TextTable table = table_with({"type", "engine", "became", ">MiB", ">became"});
  std::size_t compared = 0;
  for (const GraphRow& row : asked.rows)
    for (const View& view : views) {
      const Json &before = list_of(a, view, row), &after = list_of(b, view, row);
      const Json *const first = pick_of(before), *const then = pick_of(after);
      const auto text = [](const Json& list, const Json* pick) {
        std::string all = pick == nullptr ? "none" : marked(*pick);
        for (const Json& engine : list)
          if (is_refused(engine)) all += " " + marked(engine);
        return all;
      };
      std::string was = text(before, first), is = text(after, then);
      ++compared;
      if (was == is && mebibytes(first) == mebibytes(then)) {
        if (first != nullptr) was += own_knobs(*first, *then), is += own_knobs(*then, *first);
        if (was == is) continue;
      }
      std::vector<std::string>& cells = table.rows.emplace_back(cells_of(row));
      cells.insert(cells.end(), {view.name, was, is, mebibytes(first), mebibytes(then)});
    }
  return fmt::format("{}: {} of {} first picks changed\n\n{}", asked.title, table.rows.size(), compared,
                     table.rows.empty() ? "" : table.text());
}

Json document(const Questions& asked, const std::vector<Answers>& versions, const EnginesOptions& options,
              const std::string& properties) {
  Json all;
  Json& context = all["context"];
  context = runtime_context("start");
  context["lamina"] = build::lamina_version;
  context["commit"] = build::commit;
  context["device"] = options.device;
  context["device_properties"] = Json::parse(properties);
  context["caution"] = caution;
  for (const auto& [answers, strict] : versions) context["cudnn"].push_back(answers["cudnn"]);
  all["graphs"] = Json::array();
  for (std::size_t i = 0; i < asked.queries.size(); ++i) {
    const Query& query = asked.queries[i];
    const TensorSpec& x = query.spec.x.front();
    Json entry = {{"ops", ops_text(query.spec)},
                  {"x", to_string(x.shape)},
                  {"dtype", to_string(x.dtype)},
                  {"layout", to_string(x.layout)},
                  {"pass", pass_text(query.spec, query.pass)},
                  {"uses", query.uses}};
    for (const auto& [answers, strict] : versions) {
      Json& lists = entry["answers"].emplace_back();
      lists[x.dtype == DType::f32 ? "tf32" : "engines"] = answers["engines"][i];
      if (x.dtype == DType::f32) lists["strict"] = strict["engines"][i];
    }
    all["graphs"].push_back(std::move(entry));
  }
  return all;
}

/// The properties of the device of --device, as JSON: a known set, or the contents of a file. Throws UsageError.
std::string device_properties(const std::string& name) {
  if (const auto known = device_sets().find(name); known != device_sets().end()) return known->second;
  const auto refused = [&](const std::string& why) {
    return UsageError(fmt::format("{}: valid names: {}; else give a file with the keys of bench/devices/h200.json", why,
                                  fmt::join(std::views::keys(device_sets()), ", ")));
  };
  std::ifstream file(name);
  if (name.empty() || !file) throw refused(fmt::format("no device \"{}\", and no such file", name));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!Json::parse(text, not_too_deep, false).is_object()) throw refused(name + " does not hold a JSON object");
  return text;
}

}  // namespace

std::string cudnn_engines(const EnginesOptions& options) {
  const std::string properties = device_properties(options.device);
  if (!options.out.empty()) check_writable(options.out);
  for (const DType dtype : options.configs.dtypes)
    if (dtype == DType::f64) throw UsageError("--dtype=f64: cuDNN's graphs are asked about f32, f16 and bf16");
  if (!options.backends.plans.empty() && options.build == BuildPlans::none)
    throw UsageError("--plans needs --build=first or --build=all");
  const Questions asked = questions_of(options);
  std::vector<Answers> versions;
  std::istringstream directories(options.backends.cudnn + ',');  // without --cudnn: one empty name
  for (std::string cudnn; std::getline(directories, cudnn, ',');)
    versions.push_back(ask(cudnn, properties, asked.queries, options));
  if (!options.out.empty()) replace_file(options.out, document(asked, versions, options, properties).dump(2) + "\n");

  const bool builds = options.build != BuildPlans::none;
  const std::vector<View> views = views_of(options);
  std::string text;
  for (const auto& [answers, strict] : versions) {
    const auto sum = [&](const char* key) { return answers[key].get<int>() + strict[key].get<int>(); };
    const Json& cudnn = answers["cudnn"];
    const std::string version = cudnn["version"], directory = cudnn["directory"];
    text += fmt::format("cuDNN {} in {}, asked about {}: {} distinct graphs", version, directory, options.device,
                        asked.queries.size());
    if (builds) text += fmt::format(", {} plans, {} of them from the folder", sum("plans"), sum("loaded"));
    text += cudnn["driver"].get<bool>() ? "\n" : fmt::format(no_driver, version);
  }
  for (const GraphTable& table : asked.tables) {
    text += "\n";
    if (versions.size() == 1) text += answers_text(table, versions.front(), views, builds);
    for (std::size_t i = 1; i < versions.size(); ++i) text += changes_text(table, versions.front(), versions[i], views);
    if (!table.without.empty()) text += fmt::format("without a graph: {}\n", fmt::join(table.without, ", "));
  }
  return text + "\n" + legend + caution + "\n";
}

}  // namespace lamina::bench
