// The convolutions of networks, and what two child processes learn of them from cuDNN.

#include "engine_views.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "bench/measure/costs.h"
#include "bench/measure/plans.h"
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

}  // namespace lamina::bench
