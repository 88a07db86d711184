// A child process for each question, since a process has one cuDNN, which reads NVIDIA_TF32_OVERRIDE once.

#include "ask.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "lamina/cudnn_engines.h"
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

/// The questions of a process: to one version, with TF32 or without.
struct Task {
  std::string cudnn;
  std::string device;
  bool tf32 = true;
};

/// Says every few seconds how far a process is, and a complaint about the folder of plans once.
class Progress {
 public:
  void complain(const std::string& complaint) {
    if (!complaint.empty() && !std::exchange(complained_, true))
      fmt::print(stderr, "{}; it is made anew, as others may be\n", complaint);
  }
  void said(const std::string& version, std::size_t graphs, std::size_t of, int plans, int loaded) {
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::seconds(5)) return;
    last_ = now;
    fmt::print(stderr, "cuDNN {}: {} of {} graphs, {} plans, {} of them from the folder\n", version, graphs, of, plans,
               loaded);
  }

 private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  bool complained_ = false;
};

/// The child's message: its answers, or why it has none. Without TF32 it answers about f32 alone.
Json answers(const Task& task, const std::vector<Query>& queries, const EnginesOptions& options) {
  try {
    const CudnnEngines cudnn(task.cudnn, task.device);
    Progress progress;
    int plans = 0, loaded = 0;
    Json lists = Json::array();
    for (const Query& query : queries) {
      Json& list = lists.emplace_back(Json::array());
      if (!task.tf32 && query.spec.y.dtype != DType::f32) continue;
      int compiled = 0;
      bool enough = options.build == BuildPlans::none;
      for (const CudnnEngine& engine : cudnn.list(query.spec, query.pass)) {
        if (!task.tf32 && !engine.strict()) continue;
        Json& said = list.emplace_back(to_json(engine));
        if (enough || (engine.has("runtime_compilation") && ++compiled > 3)) continue;
        const CudnnPlan plan = cudnn.build(query.spec, query.pass, engine, options.plans);
        progress.complain(plan.complaint);
        ++plans;
        loaded += plan.from_folder ? 1 : 0;
        if (plan.refused.empty())
          said["plan"] = {{"workspace_bytes", plan.workspace_bytes}, {"bytes", plan.bytes}};
        else
          said["refused"] = plan.refused;
        enough = options.build == BuildPlans::first && plan.refused.empty();
        progress.said(cudnn.version(), lists.size(), queries.size(), plans, loaded);
      }
    }
    return {{"version", cudnn.version()},
            {"directory", cudnn.directory()},
            {"plans", plans},
            {"loaded", loaded},
            {"engines", lists}};
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

Child start(const Task& task, const std::vector<Query>& queries, const EnginesOptions& options) {
  Child child{0, {std::tmpfile(), &std::fclose}};
  if (child.answer == nullptr) fail("tmpfile");
  std::fflush(nullptr);
  child.process = ::fork();
  if (child.process < 0) fail("fork");
  if (child.process > 0) return child;
  if (task.tf32)
    ::unsetenv("NVIDIA_TF32_OVERRIDE");
  else
    ::setenv("NVIDIA_TF32_OVERRIDE", "0", 1);
  const std::string text = answers(task, queries, options).dump(-1, ' ', true, Json::error_handler_t::replace);
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

Version ask(const std::string& directory, const std::string& properties, const std::vector<Query>& queries,
            const EnginesOptions& options) {
  const Child with = start({directory, properties, true}, queries, options);
  const Child without = start({directory, properties, false}, queries, options);
  Version version{answer_of(with), answer_of(without)};
  check(version.tf32);
  check(version.strict);
  return version;
}

}  // namespace lamina::bench
