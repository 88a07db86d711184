// Runs plans from files. A plan's key has the text of its graph, which lists the tensors.

#include "tests/cudnn/carried_plans.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <sstream>

#include "lamina/device.h"
#include "lamina/error.h"
#include "lib/backends/cudnn/graph/operations.h"
#include "lib/backends/cudnn/graph/unit_engines.h"
#include "tests/io/files.h"

namespace lamina::test {
namespace {

using namespace cudnn::graph;

std::vector<std::int64_t> numbers(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::int64_t>(in), {}};
}

/// Bytes from the beginning of a tensor's first element to the end of its last element.
std::size_t bytes_of(int type, const std::vector<std::int64_t>& size, const std::vector<std::int64_t>& strides) {
  std::int64_t last = 0;
  for (std::size_t i = 0; i < size.size(); ++i) last += (size[i] - 1) * strides.at(i);
  return static_cast<std::size_t>(last + 1) * (type == cudnn::data_type::f32 ? 4 : type == data_int8 ? 1 : 2);
}

/// Runs a plan. `graph` is the graph as text, `text` the serialised plan.
void run(cudnn::Session& session, const Target& target, const std::string& graph, const std::string& text) {
  const auto built = std::make_shared<BuiltPlan>();
  built->plan = make(target, {execution_plan, {{plan_json, text}}});
  built->workspace_bytes = static_cast<std::size_t>(built->plan->int64(plan_workspace_bytes));
  built->handle = target.handle();
  Device& device = session.machine().device();
  static const float one = 1;
  std::map<std::int64_t, Buffer> stored;
  std::vector<std::int64_t>& ids = built->tensors;
  // The groups: type, extents, strides, id, and whether the tensor is virtual or by value.
  const std::regex pattern(R"(17\(901: (\d+), 902: ([\d ]+), 903: ([\d ]+), 906: (\d+), 900: \d+(, 90[78]: yes)?\))");
  for (std::sregex_iterator each(graph.begin(), graph.end(), pattern), end; each != end; ++each) {
    const std::int64_t id = std::stoll((*each)[4]);
    if (id >= first_virtual || std::ranges::find(ids, id) != ids.end()) continue;
    ids.push_back(id);
    if ((*each)[5].matched) continue;
    const std::size_t bytes = bytes_of(std::stoi((*each)[1]), numbers((*each)[2]), numbers((*each)[3]));
    device.fill(stored.emplace(id, Buffer(device, bytes)).first->second.data(), 0, bytes);
  }
  const Buffer workspace(device, std::max<std::size_t>(built->workspace_bytes, 1));
  Args args;
  args.workspace = workspace.data();
  engine_step({Pass::forward}, {"", built}, {[&](std::int64_t id, const Args&, void*) -> const void* {
                return stored.contains(id) ? stored.at(id).data() : static_cast<const void*>(&one);
              }})
      .kernel->run(args);
  device.synchronize();
}

}  // namespace

std::string key_in(const std::string& contents) {
  const std::size_t lengths = contents.find('\n') + 1, begin = contents.find('\n', lengths) + 1;
  return contents.substr(begin, std::stoul(contents.substr(lengths)));
}

std::vector<std::string> run_carried_plans(cudnn::Session& session, const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& file : std::filesystem::directory_iterator(folder))
    if (file.path().extension() == ".plan") files.push_back(file.path());
  std::ranges::sort(files);
  const Target target(session.api(), session.handle());
  std::vector<std::string> lines;
  for (const auto& file : files) {
    std::string& line = lines.emplace_back(file.filename().string());
    try {
      const std::string text = contents(file);
      if (std::ranges::count(text, '\n') < 3) throw FileError("it is damaged");
      const std::string key = key_in(text);
      const std::size_t engine = key.rfind('\n'), graph = key.rfind('\n', engine - 1) + 1;
      line += ", " + key.substr(engine + 1);
      std::string complaint;
      const auto plan = KeptPlans(folder).find(key, complaint);
      if (!plan) throw FileError(complaint);
      run(session, target, key.substr(graph, engine - graph), *plan);
      line += ": yes";
    } catch (const std::exception& error) {
      line += std::string(": no, ") + error.what();
    }
    try {
      session.machine().device().synchronize();
    } catch (const DeviceError& error) {
      lines.push_back(std::string("the device fails for good, so no other was tried: ") + error.what());
      break;
    }
  }
  return lines;
}

}  // namespace lamina::test
