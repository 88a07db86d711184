// Prints a line for each graph of networks in training: the engines that cuDNN proposes, and which engines finalise.
//
// usage: plan_lines CUDNN DEVICE.json COMPILED NETWORKS TYPES LAYOUTS     lists with commas
//
//     alexnet conv2 forward bf16 nhwc 1f0c..: 4tc 7tc~ |2tc!
//
// The number before the colon is a hash of the graph. Letters after an engine are its notes, as in `lamina_bench
// engines`. A bar begins the fallback list. "!" means that the plan does not finalise, "~" that it was not tried, and
// "x3" that the entry occurs three times in a row. All precompiled engines are tried, but only the first COMPILED of
// the engines that compile at run time.

#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "lamina/cudnn_engines.h"
#include "lamina/error.h"
#include "lamina/nets.h"
#include "lamina/random.h"

namespace {

using namespace lamina;

std::vector<std::string> parts(const std::string& list) {
  std::vector<std::string> words;
  std::istringstream in(list);
  for (std::string word; std::getline(in, word, ',');) words.push_back(word);
  return words;
}

std::string letters(const CudnnEngine& engine) {
  constexpr std::pair<char, const char*> marks[] = {
      {'t', "tensor_core"}, {'d', "down_convert_inputs"}, {'r', "reduced_precision_reduction"}, {'w', "winograd"},
      {'f', "fft"},         {'n', "nondeterministic"},    {'c', "runtime_compilation"}};
  std::string text;
  for (const auto& [letter, note] : marks)
    if (engine.has(note)) text += letter;
  return text;
}

std::string answer(const CudnnEngines& cudnn, const Spec& spec, Pass pass, int most_compiled) {
  std::string text, last;
  int times = 0, compiled = 0;
  bool fallback = false;
  const auto end_run = [&] {
    if (!last.empty()) text += " " + last + (times > 1 ? "x" + std::to_string(times) : "");
  };
  for (const CudnnEngine& engine : cudnn.list(spec, pass)) {
    const bool tried = !engine.has("runtime_compilation") || compiled++ < most_compiled;
    const bool refused = tried && !cudnn.build(spec, pass, engine).refused.empty();
    const bool first_of_fallback = engine.fallback && !fallback;
    fallback = engine.fallback;
    const std::string word = (first_of_fallback ? "|" : "") + std::to_string(engine.index) + letters(engine) +
                             (!tried    ? "~"
                              : refused ? "!"
                                        : "");
    if (word == last) {
      ++times;
      continue;
    }
    end_run();
    last = word;
    times = 1;
  }
  end_run();
  return text.empty() ? " none" : text;
}

void print_lines(const std::vector<std::string>& words) {
  std::ifstream file(words.at(1));
  const std::string device{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const CudnnEngines cudnn(words.at(0), device);
  std::set<std::string> seen;
  for (const std::string& network : parts(words.at(3)))
    for (const std::string& type : parts(words.at(4)))
      for (const std::string& layout : parts(words.at(5))) {
        const Graph graph = nets::build(network, {.batch = 16});
        Options options;
        options.dtype = type == "f16" ? DType::f16 : type == "bf16" ? DType::bf16 : DType::f32;
        options.layout = layout == "nhwc" ? Layout::nhwc : Layout::nchw;
        options.input_gradient = true;
        for (const PlannedUnit& unit : cudnn_graph_units(graph, options))
          for (const auto& [spec, pass] : cudnn_graphs(unit.spec)) {
            std::string line;
            try {
              line = cudnn_graph(spec, pass);
            } catch (const Unsupported&) {
              continue;  // no graph
            }
            if (!seen.insert(line).second) continue;
            const std::string& name = graph.nodes()[static_cast<std::size_t>(unit.nodes.front())].name;
            std::printf("%s %s %s%s %s %s %016llx:%s\n", network.c_str(), name.c_str(),
                        std::string(to_string(pass)).c_str(), spec.masks_dx ? "+fused" : "", type.c_str(),
                        layout.c_str(), static_cast<unsigned long long>(hash(line)),
                        answer(cudnn, spec, pass, std::stoi(words.at(2))).c_str());
            std::fflush(stdout);
          }
      }
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count != 7) throw UsageError("usage: plan_lines CUDNN DEVICE.json COMPILED NETWORKS TYPES LAYOUTS");
    print_lines({words + 1, words + count});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "plan_lines: %s\n", error.what());
    return 1;
  }
}
