// The instruction sets of the backend "eigen": their list, the choice of a set, and the results of each set.

#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/eigen/sets.h"
#include "tests/io/files.h"
#include "tests/support/cases/plans.h"

using namespace lamina::test;

namespace {

/// A graph of many ops. Its planes and channels leave a remainder for every vector length.
Graph every_op() {
  Graph graph("every op");
  Value x = conv(graph.input({2, 3, 22, 21}), "conv1", {.channels = 6, .kernel = 5, .stride = 2, .pad = 2});
  x = max_pool(lrn(relu(x), "lrn", {.size = 3, .alpha = 0.5}), "pool1", {.window = 3, .stride = 1, .pad = 1});
  const Value left = relu(batch_norm(conv(x, "conv2", {.channels = 20, .kernel = 3, .pad = 1, .bias = false}), "bn2"));
  const Value right = batch_norm(conv(x, "conv3", {.channels = 20, .kernel = 1, .bias = false}), "bn3");
  x = relu(add(left, right));
  x = concat({average_pool(x, "pool2", {.window = 3, .stride = 2}),
              slice(max_pool(x, "pool3", {.window = 3, .stride = 2}), "slice", {.first = 3, .count = 13})});
  x = conv(x, "conv4", {.channels = 18, .kernel = 3, .pad = 1, .groups = 3});
  x = dropout(global_average_pool(x), "drop", {.rate = 0.25F});
  softmax(fully_connected(x, "fc", {.outputs = 11}));
  return graph;
}

Options in(DType dtype, Mode mode) { return {.mode = mode, .dtype = dtype, .input_gradient = mode == Mode::training}; }

#if defined(__linux__) && defined(__x86_64__)
/// The flags that the system reports for the first processor.
std::set<std::string> processor_flags() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    std::istringstream words(line.substr(line.find(':') + 1));
    return {std::istream_iterator<std::string>(words), {}};
  }
  return {};
}
#endif

}  // namespace

TEST_CASE("this build has the instruction sets of its options, widest first") {
  std::string names;
  for (const eigen::InstructionSet* set : eigen::instruction_sets()) names += std::string(set->name) + " ";
  CHECK(names == LAMINA_TEST_SETS);
}

TEST_CASE("an instruction set runs here if the system lists its instructions") {
  CHECK(eigen::runs_here(*eigen::instruction_sets().back()));
#if defined(__linux__) && defined(__x86_64__)
  std::vector<std::string> needed;
  const std::set<std::string> flags = processor_flags();
  for (auto set = eigen::instruction_sets().rbegin() + 1; set != eigen::instruction_sets().rend(); ++set) {
    const std::string name = (*set)->name;
    for (const char* flag : {"ssse3", "sse4_1", "sse4_2", "popcnt", "cx16", "lahf_lm", "avx", "avx2", "fma", "bmi1",
                             "bmi2", "f16c", "movbe", "abm"})
      needed.emplace_back(flag);
    if (name == "x86-64-v4")
      for (const char* flag : {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}) needed.emplace_back(flag);
    if (name == "x86-64-v4-bf16") needed.emplace_back("avx512_bf16");
    if (name == "x86-64-v4-amx") needed.insert(needed.end(), {"amx_tile", "amx_bf16"});
    bool all = true;
    for (const std::string& flag : needed) all = all && flags.contains(flag);
    INFO(name);
    CHECK(eigen::runs_here(**set) == all);
  }
#endif
}

TEST_CASE("the instruction set is the widest that runs here, or the requested set") {
  const std::string widest = eigen::widest_instruction_set().name;
  CHECK_THAT(make_backend("eigen")->describe(), ContainsSubstring("instruction set " + widest + ","));
  std::string known;
  for (const eigen::InstructionSet* set : eigen::instruction_sets()) {
    known += (known.empty() ? "" : ", ") + std::string(set->name);
    if (eigen::runs_here(*set)) {
      CHECK(set->f32.kernels.lanes <= eigen::widest_instruction_set().f32.kernels.lanes);
      CHECK_THAT(make_backend("eigen", {.instruction_set = set->name})->describe(),
                 ContainsSubstring("instruction set " + std::string(set->name) + ","));
    } else {
      CHECK_THROWS_AS(make_backend("eigen", {.instruction_set = set->name}), Unsupported);
    }
  }
  CHECK_THROWS_MATCHES(make_backend("eigen", {.instruction_set = "mmx"}), UsageError,
                       Says("'mmx'", "there are " + known));
}

TEST_CASE("every op agrees with the oracle on every instruction set") {
  const Graph graph = every_op();
  const auto generic = make_backend("eigen", {.threads = 1, .instruction_set = "generic"});
  for (const Mode mode : {Mode::training, Mode::inference}) {
    Plan expected(graph, *generic, in(DType::f64, mode));
    const Outcome want = run(expected);
    for (const eigen::InstructionSet* set : sets_here()) {
      INFO(set->name << (mode == Mode::training ? ", training" : ", inference"));
      const auto backend = make_backend("eigen", {.threads = 2, .instruction_set = set->name});
      Plan plan(graph, *backend, in(DType::f64, mode));
      check_same(run(plan), want, 1e-9);
      Plan in_f32(graph, *backend, in(DType::f32, mode));
      const Outcome got = run(in_f32);
      Outcome output, wanted_output;  // gradients are left out: a rounding may change a ReLU's mask
      output.output = got.output;
      wanted_output.output = want.output;
      check_same(output, wanted_output, 1e-4);
      if (mode == Mode::training) {
        const GradientCheck few{.coordinates = 8, .directions = 2};
        CHECK(check_gradients(graph, *backend, in(DType::f64, mode), few).passed());
      }
    }
  }
}
