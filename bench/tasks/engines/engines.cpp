// Which engines cuDNN would choose: tables for people, rows and JSON for programs.

#include "engines.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "bench/context/build.h"
#include "bench/context/context.h"
#include "bench/io/result_file.h"
#include "device_sets.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using nlohmann::ordered_json;
using Engines = std::vector<CudnnEngine>;

struct Mark {
  char letter;
  const char* note;
  const char* meaning;
};
constexpr Mark marks[] = {{'t', "tensor_core", "tensor cores"},
                          {'d', "down_convert_inputs", "inputs rounded to a shorter type"},
                          {'r', "reduced_precision_reduction", "sums in a shorter type"},
                          {'w', "winograd", "Winograd"},
                          {'f', "fft", "FFT"},
                          {'n', "nondeterministic", "not the same bits on every run"},
                          {'c', "runtime_compilation", "compiled when first used"}};

constexpr const char* caution =
    "Asked without a device: engines that would be compiled at run time may be missing, that an engine is proposed "
    "does "
    "not prove that its plan builds, and the device's properties are written by hand. Engine numbers mean something "
    "within one version of cuDNN only.";

std::string marked(const CudnnEngine& engine) {
  std::string text = fmt::format("{}", engine.index);
  for (const Mark& mark : marks)
    if (engine.has(mark.note)) text += mark.letter;
  return text;
}

std::size_t count_fallback(const Engines& engines) {
  return static_cast<std::size_t>(
      std::count_if(engines.begin(), engines.end(), [](const auto& e) { return e.fallback; }));
}

std::string mebibytes(std::int64_t bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes) / (1 << 20)); }

/// "36+3": configurations of mode A, and of the fallback list.
std::string counts(const Engines& engines) {
  return fmt::format("{}+{}", engines.size() - count_fallback(engines), count_fallback(engines));
}

std::string conv_text(const Convolution& convolution) {
  Conv conv = convolution.conv;
  conv.bias = true;  // which need not be said
  const std::string text = to_string(Op(conv));
  const std::size_t open = text.find('(');
  return open == std::string::npos ? text : text.substr(open + 1, text.rfind(')') - open - 1);
}

// ---- text ----

/// First picks of a network's layers and passes, counted with their layers.
struct Tally {
  int all = 0, none = 0;
  std::map<char, int> by_mark{};
  std::int64_t most_workspace_bytes = 0;

  void add(const Engines& engines, int layers) {
    all += layers;
    if (engines.empty()) {
      none += layers;
      return;
    }
    for (const Mark& mark : marks)
      if (engines.front().has(mark.note)) by_mark[mark.letter] += layers;
    most_workspace_bytes = std::max(most_workspace_bytes, engines.front().workspace_bytes);
  }

  std::string text(const char* view) const {
    std::string line = fmt::format("{}: of {} first picks", view, all);
    const char* separator = " ";
    for (const Mark& mark : marks)
      if (const auto found = by_mark.find(mark.letter); found != by_mark.end()) {
        line += fmt::format("{}{} {}", separator, found->second, mark.note);
        separator = ", ";
      }
    if (by_mark.empty()) line += " none has a note of those below";
    if (none > 0) line += fmt::format("; for {} nothing is proposed", none);
    return line + fmt::format("; the largest workspace is {} MiB\n", mebibytes(most_workspace_bytes));
  }
};

std::string legend() {
  std::string text = "Engines in order of preference, after the bar those of the fallback list; letters: ";
  const char* separator = "";
  for (const Mark& mark : marks) {
    text += fmt::format("{}{} {}", separator, mark.letter, mark.meaning);
    separator = ", ";
  }
  return text + ".\nConfigs: configurations of mode A + of the fallback list. MiB: workspace of the first pick.\n";
}

std::string table(const std::string& network, int batch, Layout layout, const std::vector<Convolution>& convolutions,
                  const EngineViews& views) {
  constexpr std::size_t most = 6;
  TextTable table{{{"layer"},
                   {"layers", true},
                   {"input"},
                   {"conv"},
                   {"pass"},
                   {"tf32"},
                   {"configs", true},
                   {"MiB", true},
                   {"strict"},
                   {"configs", true},
                   {"MiB", true}},
                  {}};
  Tally tf32, strict;
  int differ = 0;
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const Convolution& each = convolutions[i];
    const auto use =
        std::find_if(each.uses.begin(), each.uses.end(), [&](const auto& u) { return u.network == network; });
    if (use == each.uses.end() || each.x.n != batch || each.layout != layout) continue;
    for (std::size_t pass = 0; pass < engine_passes.size(); ++pass) {
      const Engines& with = views.tf32.engines[i][pass];
      const Engines& without = views.strict.engines[i][pass];
      tf32.add(with, use->layers);
      strict.add(without, use->layers);
      const auto workspace = [](const Engines& e) { return e.empty() ? "" : mebibytes(e.front().workspace_bytes); };
      const CudnnEngine* by_notes = first_strict(with);
      const bool same =
          by_notes == nullptr ? without.empty() : !without.empty() && by_notes->index == without.front().index;
      if (!same) differ += use->layers;
      const bool first = pass == 0;
      table.rows.push_back({first ? use->layer : "", first ? fmt::format("{}", use->layers) : "",
                            first ? fmt::format("{}x{}x{}", each.x.c, each.x.h, each.x.w) : "",
                            first ? conv_text(each) : "", std::string(to_string(engine_passes[pass])),
                            ranking(with, most), counts(with), workspace(with), ranking(without, most), counts(without),
                            workspace(without)});
    }
  }
  return fmt::format(
      "{}, batch {}, {}\n\n{}\n{}{}Picked from the tf32 list by notes alone, {} of {} strict engines would be "
      "others.\n",
      network, batch, to_string(layout), table.text(), tf32.text("tf32"), strict.text("strict"), differ, strict.all);
}

// ---- CSV and JSON ----

std::string knobs_text(const CudnnEngine& engine) {
  std::string text;
  for (const CudnnEngine::Knob& knob : engine.knobs)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", knob.name, knob.value);
  return text;
}

std::string csv(const std::vector<Convolution>& convolutions, const EngineViews& views) {
  TextTable table{{{"network"},
                   {"batch"},
                   {"layout"},
                   {"layer"},
                   {"layers"},
                   {"pass"},
                   {"math"},
                   {"rank"},
                   {"list"},
                   {"engine"},
                   {"notes"},
                   {"knobs"},
                   {"workspace_bytes"}},
                  {}};
  for (std::size_t i = 0; i < convolutions.size(); ++i)
    for (const Convolution::Use& use : convolutions[i].uses)
      for (std::size_t pass = 0; pass < engine_passes.size(); ++pass)
        for (const Math math : {Math::tf32, Math::strict}) {
          const EngineView& view = math == Math::tf32 ? views.tf32 : views.strict;
          int rank = 0;
          for (const CudnnEngine& e : view.engines[i][pass])
            table.rows.push_back(
                {use.network, fmt::format("{}", convolutions[i].x.n), std::string(to_string(convolutions[i].layout)),
                 use.layer, fmt::format("{}", use.layers), std::string(to_string(engine_passes[pass])),
                 std::string(to_string(math)), fmt::format("{}", ++rank), e.fallback ? "fallback" : "a",
                 fmt::format("{}", e.index), fmt::format("{}", fmt::join(e.notes, " ")), knobs_text(e),
                 fmt::format("{}", e.workspace_bytes)});
        }
  return table.csv();
}

ordered_json to_json(const Engines& engines) {
  ordered_json list = ordered_json::array();
  for (const CudnnEngine& engine : engines) {
    ordered_json knobs = ordered_json::object();
    for (const CudnnEngine::Knob& knob : engine.knobs) knobs[knob.name] = knob.value;
    list.push_back({{"engine", engine.index},
                    {"list", engine.fallback ? "fallback" : "a"},
                    {"notes", engine.notes},
                    {"knobs", knobs},
                    {"workspace_bytes", engine.workspace_bytes}});
  }
  return list;
}

ordered_json document(const std::vector<Convolution>& convolutions, const EngineViews& views, const std::string& device,
                      const std::string& properties) {
  ordered_json all;
  ordered_json& context = all["context"];
  for (const auto& [key, value] : runtime_context("start")) context[key] = value;
  context["lamina"] = build::lamina_version;
  context["commit"] = build::commit;
  context["cudnn"] = views.tf32.version;
  context["cudnn_directory"] = views.tf32.directory;
  context["device"] = device;
  context["device_properties"] = ordered_json::parse(properties);
  context["seconds_tf32"] = views.tf32.seconds;
  context["seconds_strict"] = views.strict.seconds;
  context["left_out_of_strict"] = views.left_out;
  context["caution"] = caution;
  all["convolutions"] = ordered_json::array();
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const Convolution& each = convolutions[i];
    ordered_json entry;
    entry["conv"] = to_string(Op(each.conv));
    entry["x"] = to_string(each.x);
    entry["layout"] = to_string(each.layout);
    for (const Convolution::Use& use : each.uses)
      entry["uses"].push_back({{"network", use.network}, {"layer", use.layer}, {"layers", use.layers}});
    for (std::size_t pass = 0; pass < engine_passes.size(); ++pass) {
      const CudnnEngine* by_notes = first_strict(views.tf32.engines[i][pass]);
      ordered_json& answer = entry["passes"][std::string(to_string(engine_passes[pass]))];
      answer["tf32"] = to_json(views.tf32.engines[i][pass]);
      answer["strict"] = to_json(views.strict.engines[i][pass]);
      answer["strict_by_notes"] = by_notes == nullptr ? ordered_json() : ordered_json(by_notes->index);
    }
    all["convolutions"].push_back(std::move(entry));
  }
  return all;
}

EngineViews ask(const EnginesOptions& options, const std::string& properties,
                const std::vector<Convolution>& convolutions) {
  try {
    return ask_for_engines(options.cudnn, properties, convolutions);
  } catch (const UsageError& error) {
    const std::string missing = missing_properties(properties);
    throw UsageError(fmt::format("--device={}: {}{}", options.device, error.what(),
                                 missing.empty() ? "" : "; bench/devices/h200.json has these besides: " + missing));
  } catch (const LoadError& error) {
    throw LoadError(fmt::format("{} (--cudnn=DIR; bench/get-cudnn 9.19 brings one)", error.what()));
  }
}

}  // namespace

const CudnnEngine* first_strict(const Engines& engines) {
  const auto found = std::find_if(engines.begin(), engines.end(), [](const CudnnEngine& e) { return e.strict(); });
  return found == engines.end() ? nullptr : &*found;
}

std::string ranking(const Engines& engines, std::size_t most) {
  std::string text;
  std::size_t shown = 0;
  bool bar = false;
  std::vector<std::int64_t> seen;
  for (const CudnnEngine& engine : engines) {
    if (std::find(seen.begin(), seen.end(), engine.index) != seen.end()) continue;
    seen.push_back(engine.index);
    if (++shown > most) return text + " ..";
    if (engine.fallback && !bar) text += text.empty() ? "|" : " |";
    bar = bar || engine.fallback;
    text += (text.empty() ? "" : " ") + marked(engine);
  }
  return text.empty() ? "none" : text;
}

std::string cudnn_engines(const EnginesOptions& options) {
  const std::string properties = device_properties(options.device);
  if (!options.out.empty()) check_writable(options.out);
  const std::vector<Convolution> convolutions = distinct_convolutions(options);
  const EngineViews views = ask(options, properties, convolutions);

  const bool json_wanted = !options.out.empty() || options.screen == Screen::json;
  std::string json =
      json_wanted ? document(convolutions, views, options.device, properties).dump(2) + "\n" : std::string();
  if (!options.out.empty()) replace_file(options.out, json);
  if (options.screen == Screen::json) return json;
  if (options.format == Format::csv) return csv(convolutions, views);

  std::string text = fmt::format("cuDNN {} in {}, asked about {}: {} distinct convolutions, {:.1f} s\n\n",
                                 views.tf32.version, views.tf32.directory, options.device, convolutions.size(),
                                 std::max(views.tf32.seconds, views.strict.seconds));
  for (const std::string& network : options.networks)
    for (const int batch : options.configs.batches)
      for (const Layout layout : options.configs.layouts)
        text += table(network, batch, layout, convolutions, views) + "\n";
  text += legend() + caution + "\n";
  if (views.left_out > 0)
    text += fmt::format(
        "{} configurations with tensor cores or rounded inputs were left out of strict, though TF32 was "
        "forbidden.\n",
        views.left_out);
  return text;
}

}  // namespace lamina::bench
