// The child's side of every race between processes.

#include "server.h"

#include <iostream>
#include <map>
#include <optional>
#include <sstream>

#include "convolution.h"
#include "lamina/error.h"

namespace lamina::bench {
namespace {

using nlohmann::json;

json state_of(const DeviceState& state) {
  json answer = json::object();
  const auto reading = [&](const char* name, const std::optional<double>& value) {
    if (value) answer[name] = *value;
  };
  reading("sm_mhz", state.sm_mhz);
  reading("temperature_c", state.temperature_c);
  reading("power_w", state.power_w);
  if (!state.throttled.empty()) answer["throttled"] = state.throttled;
  if (!state.missing.empty()) answer["missing"] = state.missing;
  return answer;
}

class Server {
 public:
  Server(const Open& open, Device* device) : open_(&open), device_(device) {}

  json answer(const std::string& command, const std::string& rest) {
    if (command == "drop") return made_.clear(), json::object();
    if (command == "open") return made(rest).warm_up(), made(rest).facts();
    if (command == "pass") return made(rest).pass();
    if (command == "facts") return made(rest).facts();
    if (command == "state") return device_ == nullptr ? json::object() : state_of(device_->state());
    if (command == "result") return {{"result", made(rest).result()}};
    if (command == "list") {
      std::istringstream words(rest);
      std::string net;
      int batch = 0;
      words >> net >> batch;
      return convolutions_of(net, batch);
    }
    throw UsageError("no command '" + command + "'; there are open, facts, pass, result, list, state and drop");
  }

 private:
  Served& made(const std::string& rest) {
    std::unique_ptr<Served>& served = made_[rest];
    if (served) return *served;
    std::istringstream words(rest);
    std::string what, variant, numbers;
    words >> what >> variant >> std::ws;
    std::getline(words, numbers);
    served = (*open_)(what, variant, numbers);
    return *served;
  }

  const Open* open_;
  Device* device_;
  std::map<std::string, std::unique_ptr<Served>> made_;  ///< by the words that asked for it
};

}  // namespace

void put(json& answer, const std::string& what, const Sample& sample) {
  answer[what] = sample.seconds;
  answer[what + "_cpu"] = sample.cpu_seconds;
}

void serve(const json& greeting, const Open& open, Device* device) {
  std::cout << greeting.dump() << std::endl;
  Server server(open, device);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream words(line);
    std::string command, rest;
    words >> command >> std::ws;
    std::getline(words, rest);
    json answer;
    try {
      answer = server.answer(command, rest);
    } catch (const Unsupported& error) {
      answer = {{"error", error.what()}, {"refused", true}};
    }
    std::cout << answer.dump() << std::endl;
  }
}

}  // namespace lamina::bench
