// Which engines cuDNN would choose for the convolutions of networks, on a device that need not be present.
// What --device names: a known set of properties, or a file.

#include "engines.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>

#include "bench/context/build.h"
#include "bench/context/context.h"
#include "bench/io/result_file.h"
#include "bench/io/text.h"
#include "bench/measure/layers.h"
#include "bench/measure/session.h"
#include "bench/tasks/describe.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const CudnnEngine& engine) {
  Json knobs = Json::object();
  for (const CudnnEngine::Knob& knob : engine.knobs) knobs[knob.name] = knob.value;
  return {{"engine", engine.index},
          {"list", engine.fallback ? "fallback" : "a"},
          {"notes", engine.notes},
          {"knobs", knobs},
          {"workspace_bytes", engine.workspace_bytes}};
}

/// What the child has to say: its answers, or why it has none.
Json answers(const std::string& directory, const std::string& device, const std::vector<Convolution>& convolutions,
             bool tf32) {
  try {
    const CudnnEngines cudnn(directory, device);
    Json lists = Json::array();
    for (const Convolution& each : convolutions) {
      Json passes;
      for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_params}) {
        Json& list = passes[std::string(to_string(pass))] = Json::array();
        for (const CudnnEngine& engine : cudnn.list(each.conv, each.x, each.layout, pass))
          if (tf32 || engine.strict()) list.push_back(to_json(engine));
      }
      lists.push_back(std::move(passes));
    }
    return {{"version", cudnn.version()}, {"directory", cudnn.directory()}, {"engines", lists}};
  } catch (const UsageError& error) {
    return {{"wrong_use", error.what()}};
  } catch (const LoadError& error) {
    return {{"not_loaded", error.what()}};
  } catch (const std::exception& error) {
    return {{"failed", error.what()}};
  }
}

/// A process that asks cuDNN, and the file that it writes its answer to.
struct Child {
  pid_t process;
  std::unique_ptr<FILE, int (*)(FILE*)> answer;
};

[[noreturn]] void fail(const char* call) {
  throw Error(fmt::format("cannot ask cuDNN in a separate process: {}: {}", call, std::strerror(errno)));
}

Child start(const std::string& directory, const std::string& device, const std::vector<Convolution>& convolutions,
            bool tf32) {
  Child child{0, {std::tmpfile(), &std::fclose}};
  if (child.answer == nullptr) fail("tmpfile");
  std::fflush(nullptr);
  child.process = ::fork();
  if (child.process < 0) fail("fork");
  if (child.process > 0) return child;
  if (tf32)
    ::unsetenv("NVIDIA_TF32_OVERRIDE");
  else
    ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const std::string text =
      answers(directory, device, convolutions, tf32).dump(-1, ' ', true, Json::error_handler_t::replace);
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
  return Json::parse(child.answer.get(), nullptr, false);
}

void check(const Json& answer) {
  if (answer.contains("wrong_use")) throw UsageError(answer["wrong_use"].get<std::string>());
  if (answer.contains("not_loaded")) throw LoadError(answer["not_loaded"].get<std::string>());
  if (answer.contains("failed")) throw DeviceError(answer["failed"].get<std::string>());
  if (!answer.contains("engines")) throw DeviceError("the process that asked cuDNN ended without an answer");
}

constexpr std::pair<char, const char*> marks[] = {
    {'t', "tensor_core"}, {'d', "down_convert_inputs"}, {'r', "reduced_precision_reduction"}, {'w', "winograd"},
    {'f', "fft"},         {'n', "nondeterministic"},    {'c', "runtime_compilation"}};

constexpr const char* legend =
    "Engines in order of preference, after the bar those of the fallback list; letters: t tensor cores, d inputs\n"
    "rounded to a shorter type, r sums in a shorter type, w Winograd, f FFT, n not the same bits on every run, c\n"
    "compiled when first used.\n"
    "Configs: configurations of mode A + of the fallback list. MiB: workspace of the first pick.\n";

constexpr const char* caution =
    "Asked without a device: engines that would be compiled at run time may be missing, that an engine is proposed "
    "does not prove that its plan builds, and the device's properties are written by hand. Engine numbers mean "
    "something within one version of cuDNN only.";

std::string marked(const Json& engine) {
  std::string text = engine["engine"].dump();
  const Json& notes = engine["notes"];
  for (const auto& [letter, note] : marks)
    if (std::find(notes.begin(), notes.end(), note) != notes.end()) text += letter;
  return text;
}

bool is_fallback(const Json& engine) { return engine["list"] == "fallback"; }

/// A list in short: engines in order of their first configuration, each with the letters of its notes: "67t 46t 70
/// 25n". A bar comes before those of the fallback list. A few of them, then "..".
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

/// Adds what a table says of a list: its ranking, "36+3" configurations of mode A and of the fallback list, MiB.
void add_cells(std::vector<std::string>& row, const Json& engines) {
  const auto fallback = std::count_if(engines.begin(), engines.end(), is_fallback);
  row.push_back(ranking(engines));
  row.push_back(fmt::format("{}+{}", static_cast<std::ptrdiff_t>(engines.size()) - fallback, fallback));
  row.push_back(engines.empty() ? "" : fmt::format("{:.1f}", engines[0]["workspace_bytes"].get<double>() / mebibyte));
}

std::string table(const std::string& network, int batch, Layout layout, const std::vector<Convolution>& convolutions,
                  const EngineViews& views) {
  TextTable table;
  table.columns = {"layer",    ">layers", "input",  "conv",     "pass", "tf32",
                   ">configs", ">MiB",    "strict", ">configs", ">MiB"};
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const Convolution& each = convolutions[i];
    const auto use =
        std::find_if(each.uses.begin(), each.uses.end(), [&](const auto& u) { return u["network"] == network; });
    if (use == each.uses.end() || each.x.n != batch || each.layout != layout) continue;
    Conv conv = each.conv;
    conv.bias = true;  // which need not be said
    std::vector<std::string> row = {(*use)["layer"].get<std::string>(), (*use)["layers"].dump(), image_text(each.x),
                                    geometry(conv)};
    for (const auto& [pass, with] : views.tf32["engines"][i].items()) {
      row.push_back(pass);
      add_cells(row, with);
      add_cells(row, views.strict["engines"][i][pass]);
      table.rows.push_back(row);
      row.assign(4, "");  // the layer is named once
    }
  }
  return fmt::format("{}, batch {}, {}\n\n{}", network, batch, to_string(layout), table.text());
}

Json document(const std::vector<Convolution>& convolutions, const EngineViews& views, const std::string& device,
              const std::string& properties) {
  Json all;
  Json& context = all["context"];
  context = runtime_context("start");
  context["lamina"] = build::lamina_version;
  context["commit"] = build::commit;
  context["cudnn"] = views.tf32["version"];
  context["cudnn_directory"] = views.tf32["directory"];
  context["device"] = device;
  context["device_properties"] = Json::parse(properties);
  context["caution"] = caution;
  all["convolutions"] = Json::array();
  for (std::size_t i = 0; i < convolutions.size(); ++i) {
    const Convolution& each = convolutions[i];
    Json entry = {{"conv", to_string(Op(each.conv))},
                  {"x", to_string(each.x)},
                  {"layout", to_string(each.layout)},
                  {"uses", each.uses}};
    for (const auto& [pass, with] : views.tf32["engines"][i].items())
      entry["passes"][pass] = {{"tf32", with}, {"strict", views.strict["engines"][i][pass]}};
    all["convolutions"].push_back(std::move(entry));
  }
  return all;
}

/// What --device names, as JSON: a known set of properties, or a file.
std::string device_properties(const std::string& name) {
  if (const auto known = device_sets().find(name); known != device_sets().end()) return known->second;
  std::vector<std::string> names;
  for (const auto& [each, text] : device_sets()) names.push_back(each);
  const auto refused = [&](const std::string& why) {
    return UsageError(fmt::format("{}: valid names: {}; else give a file with the keys of bench/devices/h200.json", why,
                                  fmt::join(names, " and ")));
  };
  std::ifstream file(name);
  if (name.empty() || !file) throw refused(fmt::format("no device \"{}\", and no such file", name));
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!Json::parse(text, not_too_deep, false).is_object()) throw refused(name + " does not hold a JSON object");
  return text;
}

/// Keys of the known sets that these properties lack: "maxGridSize, warpSize"; nothing where they have all.
std::string missing_properties(const std::string& text) {
  const Json read = Json::parse(text, not_too_deep, false), known = Json::parse(device_sets().at("h200"));
  std::vector<std::string> missing;
  for (const auto& [key, value] : known.items())
    if (!read.contains(key)) missing.push_back(key);
  return fmt::format("{}", fmt::join(missing, ", "));
}

EngineViews ask(const EnginesOptions& options, const std::string& properties,
                const std::vector<Convolution>& convolutions) {
  try {
    return ask_for_engines(options.backends.cudnn, properties, convolutions);
  } catch (const UsageError& error) {
    const std::string missing = missing_properties(properties);
    throw UsageError(fmt::format("--device={}: {}{}", options.device, error.what(),
                                 missing.empty() ? "" : "; bench/devices/h200.json has these besides: " + missing));
  } catch (const LoadError& error) {
    throw LoadError(fmt::format("{} (--cudnn=DIR; bench/get-cudnn 9.19 brings one)", error.what()));
  }
}

}  // namespace

std::vector<Convolution> distinct_convolutions(const EnginesOptions& options) {
  std::vector<Convolution> found;
  for (const std::string& network : options.networks)
    for (const int batch : options.configs.batches)
      for (const Layout layout : options.configs.layouts) {
        const Config c{bench::network(network, options.net).name, "", DType::f32, layout, batch};
        const Graph graph = graph_of(c, options.net);
        for (const Node& node : graph.nodes()) {
          if (!std::holds_alternative<Conv>(node.op)) continue;
          Conv conv = std::get<Conv>(node.op);
          conv.bias = false;
          const Shape x = input_shapes(graph, node).front();
          auto same = std::find_if(found.begin(), found.end(), [&](const Convolution& other) {
            return other.conv == conv && other.x == x && other.layout == layout;
          });
          if (same == found.end()) same = found.insert(found.end(), {conv, x, layout});
          const auto use = std::find_if(same->uses.begin(), same->uses.end(),
                                        [&](const Json& other) { return other["network"] == c.network; });
          if (use == same->uses.end())
            same->uses.push_back({{"network", c.network}, {"layer", node.name}, {"layers", 1}});
          else
            (*use)["layers"] = (*use)["layers"].get<int>() + 1;
        }
      }
  return found;
}

EngineViews ask_for_engines(const std::string& directory, const std::string& device,
                            const std::vector<Convolution>& convolutions) {
  const Child with = start(directory, device, convolutions, true);
  const Child without = start(directory, device, convolutions, false);
  EngineViews views{answer_of(with), answer_of(without)};
  check(views.tf32);
  check(views.strict);
  return views;
}

std::string cudnn_engines(const EnginesOptions& options) {
  const std::string properties = device_properties(options.device);
  if (!options.out.empty()) check_writable(options.out);
  const std::vector<Convolution> convolutions = distinct_convolutions(options);
  const EngineViews views = ask(options, properties, convolutions);

  if (!options.out.empty())
    replace_file(options.out, document(convolutions, views, options.device, properties).dump(2) + "\n");

  std::string text = fmt::format("cuDNN {} in {}, asked about {}: {} distinct convolutions\n\n",
                                 views.tf32["version"].get<std::string>(), views.tf32["directory"].get<std::string>(),
                                 options.device, convolutions.size());
  for (const std::string& network : options.networks)
    for (const int batch : options.configs.batches)
      for (const Layout layout : options.configs.layouts)
        text += table(network, batch, layout, convolutions, views) + "\n";
  return text + legend + caution + "\n";
}

}  // namespace lamina::bench
