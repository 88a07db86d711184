// Answers of cuDNN as tables, as a file, and beside another version's.
// The device of --device: a known set of properties, or a file.

#include "engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

#include "bench/context/build.h"
#include "bench/context/context.h"
#include "bench/tasks/describe.h"
#include "lamina/error.h"
#include "questions.h"

namespace lamina::bench {
namespace {

/// The columns of answers for a type. f32 has two such views: with TF32, and strict.
struct View {
  std::string name;
  std::size_t type;  ///< place of the type in the options
  const char* key;   ///< key of the view's list in an answer
};

std::vector<View> views_of(const EnginesOptions& options) {
  std::vector<View> views;
  for (std::size_t i = 0; i < options.configs.dtypes.size(); ++i) {
    const DType dtype = options.configs.dtypes[i];
    if (dtype == DType::f32)
      views.insert(views.end(), {{"tf32", i, "tf32"}, {"strict", i, "strict"}});
    else
      views.push_back({std::string(to_string(dtype)), i, "engines"});
  }
  return views;
}

const Json& list_of(const Version& version, const View& view, const GraphRow& row) {
  return version.answers[row.queries[view.type]][view.key];
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
    "Asked without a device, whose properties are written by hand. Engines that are compiled at run time are missing "
    "where there is no libcuda.so.1. No plan has run on a device. Engine numbers mean something within one version of "
    "cuDNN only.";

std::string marked(const Json& engine) {
  std::string text = engine["engine"].dump();
  const Json& notes = engine["notes"];
  for (const auto& [letter, note] : marks)
    if (std::find(notes.begin(), notes.end(), note) != notes.end()) text += letter;
  return text + (engine.contains("refused") ? "!" : "");
}

bool is_fallback(const Json& engine) { return engine["list"] == "fallback"; }

/// A list in short: engines in order of their first configuration, each with the letters of its notes: "67t 46t 70
/// 25n". A bar comes before the engines of the fallback list. After six engines there is "..".
std::string ranking(const Json& engines) {
  constexpr std::size_t most = 6;
  std::string text;
  bool bar = false;
  std::vector<Json> seen;
  for (const Json& engine : engines) {
    if (std::find(seen.begin(), seen.end(), engine["engine"]) != seen.end()) continue;
    seen.push_back(engine["engine"]);
    if (seen.size() > most) return text + " ..";
    if (is_fallback(engine) && !bar) text += text.empty() ? "|" : " |";
    bar = bar || is_fallback(engine);
    text += (text.empty() ? "" : " ") + marked(engine);
  }
  return text.empty() ? "none" : text;
}

bool is_refused(const Json& engine) { return engine.contains("refused"); }

/// The first engine that is not refused; null if there is none.
const Json* pick_of(const Json& engines) {
  const auto found = std::find_if_not(engines.begin(), engines.end(), is_refused);
  return found == engines.end() ? nullptr : &*found;
}

std::string mebibytes(const Json* engine) {
  if (engine == nullptr) return "";
  const Json& stated = engine->contains("plan") ? (*engine)["plan"] : *engine;
  return fmt::format("{:.1f}", stated["workspace_bytes"].get<double>() / mebibyte);
}

/// Adds what a table says of a list: its ranking, "36+3" configurations of mode A and of the fallback list, MiB, and
/// the numbers of built and of tried plans.
void add_cells(std::vector<std::string>& cells, const Json& engines, bool builds) {
  const auto count = [&](auto is) { return std::count_if(engines.begin(), engines.end(), is); };
  const auto fallback = count(is_fallback);
  cells.push_back(ranking(engines));
  cells.push_back(fmt::format("{}+{}", static_cast<std::ptrdiff_t>(engines.size()) - fallback, fallback));
  cells.push_back(mebibytes(pick_of(engines)));
  const auto built = count([](const Json& engine) { return engine.contains("plan"); });
  if (builds) cells.push_back(fmt::format("{}/{}", built, built + count(is_refused)));
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

std::string answers_text(const GraphTable& asked, const Version& version, const std::vector<View>& views, bool builds) {
  std::vector<TextTable::Column> columns;
  for (const View& view : views) {
    columns.insert(columns.end(), {view.name, ">configs", ">MiB"});
    if (builds) columns.emplace_back(">plans");
  }
  TextTable table = table_with(columns);
  for (const GraphRow& row : asked.rows) {
    std::vector<std::string> cells = cells_of(row);
    for (const View& view : views) add_cells(cells, list_of(version, view, row), builds);
    table.rows.push_back(std::move(cells));
  }
  return asked.title + "\n\n" + table.text();
}

/// The knobs of an engine that another lacks or has with other values: " tile_size=5".
std::string own_knobs(const Json& engine, const Json& other) {
  std::string text;
  for (const auto& [name, value] : engine["knobs"].items())
    if (other["knobs"].value(name, Json()) != value) text += fmt::format(" {}={}", name, value.dump());
  return text;
}

/// A row for each first pick of a later version that differs from the first version's. Knobs are shown only if nothing
/// else differs.
std::string changes_text(const GraphTable& asked, const Version& a, const Version& b, const std::vector<View>& views) {
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
      std::vector<std::string> cells = cells_of(row);
      cells.insert(cells.end(), {view.name, was, is, mebibytes(first), mebibytes(then)});
      table.rows.push_back(std::move(cells));
    }
  return fmt::format("{}: {} of {} first picks changed\n\n{}", asked.title, table.rows.size(), compared,
                     table.rows.empty() ? "" : table.text());
}

Json document(const Questions& asked, const std::vector<Version>& versions, const EnginesOptions& options,
              const std::string& properties) {
  Json all;
  Json& context = all["context"];
  context = runtime_context("start");
  context["lamina"] = build::lamina_version;
  context["commit"] = build::commit;
  context["device"] = options.device;
  context["device_properties"] = Json::parse(properties);
  context["caution"] = caution;
  for (const Version& version : versions)
    context["cudnn"].push_back({{"version", version.number}, {"directory", version.directory}});
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
    for (const Version& version : versions) entry["answers"].push_back(version.answers[i]);
    all["graphs"].push_back(std::move(entry));
  }
  return all;
}

/// The device of --device as JSON: a known set of properties, or a file.
std::string device_properties(const std::string& name) {
  if (const auto known = device_sets().find(name); known != device_sets().end()) return known->second;
  std::vector<std::string> names;
  for (const auto& [each, text] : device_sets()) names.push_back(each);
  const auto refused = [&](const std::string& why) {
    return UsageError(fmt::format("{}: valid names: {}; else give a file with the keys of bench/devices/h200.json", why,
                                  fmt::join(names, ", ")));
  };
  std::ifstream file(name);
  if (name.empty() || !file) throw refused(fmt::format("no device \"{}\", and no such file", name));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!Json::parse(text, not_too_deep, false).is_object()) throw refused(name + " does not hold a JSON object");
  return text;
}

/// Calls ask(), and adds advice to its errors.
Version ask_with_advice(const std::string& directory, const std::string& properties, const std::vector<Query>& queries,
                        const EnginesOptions& options) {
  try {
    return ask(directory, properties, queries, options);
  } catch (const UsageError& error) {
    throw UsageError(
        fmt::format("--device={}: {}; bench/devices/h200.json has all keys", options.device, error.what()));
  } catch (const LoadError& error) {
    throw LoadError(fmt::format("{} (--cudnn=DIR; bench/get-cudnn 9.19 brings one)", error.what()));
  }
}

}  // namespace

std::string cudnn_engines(const EnginesOptions& options) {
  const std::string properties = device_properties(options.device);
  if (!options.out.empty()) check_writable(options.out);
  for (const DType dtype : options.configs.dtypes)
    if (dtype == DType::f64) throw UsageError("--dtype=f64: cuDNN's graphs are asked about f32, f16 and bf16");
  if (!options.plans.empty() && options.build == BuildPlans::none)
    throw UsageError("--plans needs --build=first or --build=all");
  const Questions asked = questions_of(options);
  std::vector<Version> versions;
  std::istringstream directories(options.backends.cudnn + ',');  // one empty name where there is none
  for (std::string cudnn; std::getline(directories, cudnn, ',');)
    versions.push_back(ask_with_advice(cudnn, properties, asked.queries, options));
  if (!options.out.empty()) replace_file(options.out, document(asked, versions, options, properties).dump(2) + "\n");

  const bool builds = options.build != BuildPlans::none;
  const std::vector<View> views = views_of(options);
  std::string text;
  for (const Version& version : versions) {
    text += fmt::format("cuDNN {} in {}, asked about {}: {} distinct graphs", version.number, version.directory,
                        options.device, asked.queries.size());
    text += builds ? fmt::format(", {} plans, {} of them from the folder\n", version.plans, version.loaded) : "\n";
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
