// What the children of `compare --layers` share.

#include "layer_server.h"

#include <chrono>
#include <ctime>
#include <iostream>
#include <map>
#include <sstream>
#include <utility>

#include "lamina/error.h"

namespace peers {
namespace {

using nlohmann::json;

constexpr double sample_seconds = 0.1;  // the clocks that tell what neighbours used tick every 0.01 s

double wall_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

lamina::Pass pass_of(const std::string& name) {
  for (const lamina::Pass pass : {lamina::Pass::forward, lamina::Pass::backward_params, lamina::Pass::backward_data})
    if (name == to_string(pass)) return pass;
  throw lamina::UsageError("no pass '" + name + "'; there are forward, backward_params and backward_data");
}

Convolution read_convolution(std::istream& words) {
  Convolution conv{{}, {.channels = 0, .kernel = 0}};
  auto& [x, op] = conv;
  words >> x.n >> x.c >> x.h >> x.w >> op.channels >> op.kernel.h >> op.kernel.w >> op.stride.h >> op.stride.w >>
      op.pad.h >> op.pad.w >> op.dilation.h >> op.dilation.w >> op.groups >> op.bias;
  if (!words)
    throw lamina::UsageError(
        "a convolution is 15 whole numbers: n c h w k r s, stride, pad and dilation by "
        "rows and columns, groups, and 1 or 0 for a bias");
  return conv;
}

json sample(TimedPass& pass, const std::string& name) {
  Sample total = pass.run();
  int runs = 1;
  if (total.seconds < sample_seconds) {
    total = {};  // the first run woke the threads
    for (runs = 0; total.seconds < sample_seconds; ++runs) {
      const Sample one = pass.run();
      total.seconds += one.seconds;
      total.cpu_seconds += one.cpu_seconds;
    }
  }
  return {{name, total.seconds / runs}, {name + "_cpu", total.cpu_seconds / runs}, {"runs", runs}};
}

}  // namespace

std::string spell(const Convolution& conv) {
  const auto& [x, op] = conv;
  std::ostringstream text;
  text << x.n << ' ' << x.c << ' ' << x.h << ' ' << x.w << ' ' << op.channels;
  for (const lamina::Size& size : {op.kernel, op.stride, op.pad, op.dilation}) text << ' ' << size.h << ' ' << size.w;
  text << ' ' << op.groups << ' ' << op.bias;
  return text.str();
}

Stopwatch::Stopwatch() : start_(wall_seconds()), cpu_start_(cpu_seconds()) {}

Sample Stopwatch::elapsed() const {
  const double now = wall_seconds();
  return {now - start_, cpu_seconds() - cpu_start_};
}

std::vector<float> numbers(std::int64_t count, const std::string& tensor) {
  std::vector<float> found(static_cast<std::size_t>(count));
  std::uint32_t state = 1;
  for (const char letter : tensor) state = 31 * state + static_cast<unsigned char>(letter);
  for (float& number : found) {
    state = 1664525 * state + 1013904223;  // a linear congruential generator; its high bits are its best
    number = static_cast<float>((state >> 16) % 7) - 3;
  }
  return found;
}

void serve(const json& greeting, const Open& open) {
  std::cout << greeting.dump() << std::endl;
  std::map<std::string, std::unique_ptr<TimedPass>> passes;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, name, variant, rest;
    words >> command;
    json answer = json::object();
    if (command == "drop") {
      passes.clear();
    } else if (command == "open" || command == "pass" || command == "result") {
      std::getline(words, rest);
      auto& pass = passes[rest];
      std::istringstream asked(rest);
      asked >> name >> variant;
      try {
        if (!pass) {
          pass = open(read_convolution(asked), pass_of(name), variant);
          pass->run();  // warm-up
        }
        if (command == "open") {
          answer = {{"implementation", pass->implementation()}};
        } else if (command == "pass") {
          answer = sample(*pass, name);
        } else {
          pass->run();
          answer = {{"result", pass->result()}};
        }
      } catch (const lamina::Unsupported& error) {
        answer = {{"unsupported", error.what()}};
      }
    } else {
      throw lamina::UsageError("no command '" + command + "'; there are open, pass, result and drop");
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace peers
