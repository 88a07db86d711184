// The convolutions of networks, and what two child processes learn of them from cuDNN.

#include "engine_views.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>

#include "bench/measure/costs.h"
#include "bench/measure/plans.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

json to_json(const CudnnEngine& engine) {
  json knobs = json::array();
  for (const CudnnEngine::Knob& knob : engine.knobs) knobs.push_back({knob.name, knob.value});
  return {engine.index, engine.fallback, engine.notes, knobs, engine.workspace_bytes};
}

CudnnEngine engine_of(const json& read) {
  CudnnEngine engine{read[0], read[1], read[2], {}, read[4]};
  for (const json& knob : read[3]) engine.knobs.push_back({knob[0], knob[1]});
  return engine;
}

/// What the child has to say: its answers, or why it has none.
json answers(const std::string& directory, const std::string& device, const std::vector<Convolution>& convolutions) {
  try {
    const auto start = std::chrono::steady_clock::now();
    const CudnnEngines cudnn(directory, device);
    json lists = json::array();
    for (const Convolution& each : convolutions)
      for (const Pass pass : engine_passes) {
        json list = json::array();
        for (const CudnnEngine& engine : cudnn.list(each.conv, each.x, each.layout, pass))
          list.push_back(to_json(engine));
        lists.push_back(std::move(list));
      }
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    return {
        {"version", cudnn.version()}, {"directory", cudnn.directory()}, {"seconds", seconds.count()}, {"lists", lists}};
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
  const std::string text = answers(directory, device, convolutions).dump(-1, ' ', true, json::error_handler_t::replace);
  const bool written = std::fputs(text.c_str(), child.answer.get()) >= 0 && std::fflush(child.answer.get()) == 0;
  ::_exit(written ? 0 : 1);
}

json answer_of(const Child& child) {
  int status = 0;
  while (::waitpid(child.process, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFSIGNALED(status))
    throw DeviceError(fmt::format("cuDNN ended the process that asked it, with signal {} ({})", WTERMSIG(status),
                                  ::strsignal(WTERMSIG(status))));
  std::rewind(child.answer.get());
  return json::parse(child.answer.get(), nullptr, false);
}

EngineView view_of(const Child& child, std::size_t convolutions) {
  const json read = answer_of(child);
  if (read.contains("wrong_use")) throw UsageError(read["wrong_use"].get<std::string>());
  if (read.contains("not_loaded")) throw LoadError(read["not_loaded"].get<std::string>());
  if (read.contains("failed")) throw DeviceError(read["failed"].get<std::string>());
  if (!read.contains("lists")) throw DeviceError("the process that asked cuDNN ended without an answer");
  EngineView view{read["version"], read["directory"], read["seconds"]};
  view.engines.resize(convolutions);
  std::size_t at = 0;
  for (auto& passes : view.engines)
    for (auto& engines : passes)
      for (const json& engine : read["lists"][at++]) engines.push_back(engine_of(engine));
  return view;
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
                                        [&](const Convolution::Use& other) { return other.network == c.network; });
          if (use == same->uses.end())
            same->uses.push_back({c.network, node.name});
          else
            ++use->layers;
        }
      }
  return found;
}

EngineViews ask_for_engines(const std::string& directory, const std::string& device,
                            const std::vector<Convolution>& convolutions) {
  const Child with = start(directory, device, convolutions, true);
  const Child without = start(directory, device, convolutions, false);
  EngineViews views;
  try {
    views.tf32 = view_of(with, convolutions.size());
  } catch (...) {
    ::kill(without.process, SIGKILL);
    ::waitpid(without.process, nullptr, 0);
    throw;
  }
  views.strict = view_of(without, convolutions.size());
  for (auto& passes : views.strict.engines)
    for (auto& engines : passes)
      views.left_out += static_cast<int>(std::erase_if(engines, [](const CudnnEngine& e) { return !e.strict(); }));
  return views;
}

}  // namespace lamina::bench
