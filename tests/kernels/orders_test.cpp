// Runs every op with every algorithm on cuda-host in three orders of blocks and threads. The bits must be the same, and
// every compiled kernel must run.

#include <link.h>

#include <cstdio>
#include <regex>

#include "kernels/bias.h"
#include "kernels/host/grid.h"
#include "kernels/moves/moves.h"
#include "kernels/recurrent/recurrent.h"
#include "kernels/timing/delay.h"
#include "kernels/timing/peak.h"
#include "tests/support/cases/suite.h"
#include "tests/support/catch.h"
#include "tiles.h"

using namespace lamina::test;
namespace host = lamina::cuda_host::host;

namespace {

/// Checks that a call has the same results in every order of blocks and threads.
template <class Call>
void check_in_every_order(const Call& call) {
  host::set_thread_order(host::Order::ascending);
  const auto ascending = call();
  for (const host::Order order : {host::Order::descending, host::Order::shuffled}) {
    host::set_thread_order(order, 7);
    CHECK((call() == ascending));
  }
  host::set_thread_order(host::Order::ascending);
}

void check_orders(Backend& backend, const Case& c, DType dtype, bool adds) {
  const std::optional<Spec> spec = make_spec(backend, c, {.dtype = dtype, .adds = adds});
  REQUIRE(spec);
  const Feed feed = make_feed(c, 3, Fill::normal, dtype);
  for (const Choice& choice : choices(*spec, [&](Pass pass) { return backend.algorithms(*spec, pass); })) {
    INFO(to_string(c) << " in " << to_string(dtype) << " by " << choice.algorithm[0] << '/' << choice.algorithm[1]
                      << '/' << choice.algorithm[2]);
    check_in_every_order([&] { return run_unit(backend, *spec, choice, feed); });
  }
}

/// Runs two steps of a training, and reads a parameter back.
Values updated(const std::shared_ptr<Backend>& backend, const Graph& graph, std::string_view parameter,
               const Options& options) {
  Plan plan(graph, *backend, options);
  for (int i = 0; i < 2; ++i) {
    plan.forward();
    if (options.loss_scale > 0) plan.scale_loss();
    plan.backward();
    plan.update(0.1);
  }
  return read(backend->device(), plan.parameter(parameter));
}

void check_update_orders(const std::shared_ptr<Backend>& backend, const Graph& graph, std::string_view parameter,
                         const Options& options) {
  INFO(to_string(*options.optimiser) << " in " << to_string(options.dtype) << ", " << parameter << ", scale "
                                     << options.loss_scale);
  check_in_every_order([&] { return updated(backend, graph, parameter, options); });
}

void check_update_orders(const std::shared_ptr<Backend>& backend, DType dtype, double loss_scale) {
  Graph layer("one layer");
  const Value scores =
      fully_connected(layer.input({1, 7, 1, 1}), "fc", {.outputs = 333});  // the gradient's norm has several slices
  softmax_cross_entropy(scores, layer.input({1, 1, 1, 1}, "labels"), "loss");
  Options options{.dtype = dtype, .clip_norm = 0.5, .loss_scale = loss_scale};
  for (const Optimiser& optimiser :
       std::vector<Optimiser>{Sgd{}, Sgd{.momentum = 0.9}, RmsProp{}, Adadelta{}, Adam{}}) {
    options.optimiser = optimiser;
    check_update_orders(backend, layer, "fc.weight", options);
  }

  Graph table("a table of which some rows are read");
  const Value words = embedding(table.input({2, 1, 3, 1}, "ids"), "words", {.vocabulary = 40, .features = 37});
  softmax_cross_entropy(global_average_pool(words), table.input({2, 1, 1, 1}, "labels"), "loss");
  options.clip_norm = 0;
  options.table_updates = TableUpdates::lazy;
  for (const Optimiser& optimiser : std::vector<Optimiser>{Sgd{}, RmsProp{}, Adadelta{}, Adam{}}) {
    options.optimiser = optimiser;
    check_update_orders(backend, table, "words.weight", options);
  }
}

/// Runs half-precision biases: in packs, without packs, and in rows of channels.
template <class Half>
std::vector<double> biases() {
  std::vector<Half> values(600);
  for (std::size_t i = 0; i < values.size(); ++i) values[i].bits = static_cast<std::uint16_t>(0x3c00 + i % 97);
  const std::array bias = {1.0F, -2.0F, 0.5F, 0.25F, -1.0F, 2.0F, -0.5F, 4.0F};
  std::vector<double> found, partial(3);
  std::array<float, 3> sums{};
  const auto take = [&] { found.insert(found.end(), sums.begin(), sums.end()); };
  for (const int width : {8, 7}) {
    const cuda_host::View<Half> y{values.data(), 2, 3, 1, width, 3 * width};
    cuda_host::add_bias(nullptr, bias.data(), y, true);
    cuda_host::bias_gradient(nullptr, cuda_host::Masked<Half>{y, {}}, sums.data(), false, partial.data());
    take();
  }
  for (const int channels : {8, 3})
    cuda_host::add_bias_to_rows<Half>(nullptr, bias.data(), {values.data(), 75, channels, 1, 1, channels}, true);
  cuda_host::bias_gradient_of_rows<Half>(nullptr, {values.data(), 200, 3, 1, 1, 3}, sums.data(), false, partial.data());
  take();
  return found;
}

template <class From, class To>
void check_transpose_orders() {
  check_in_every_order([] {
    std::vector<unsigned char> from(40 * 35 * sizeof(From)), to(40 * 35 * sizeof(To));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i % 59);
    cuda_host::transpose<From, To>(nullptr, {reinterpret_cast<const From*>(from.data()), 1, 40, 35, 35, 1400},
                                   {reinterpret_cast<To*>(to.data()), 1, 35, 40, 40, 1400});
    return to;
  });
}

template <class Half>
void check_orders_of_halves() {
  check_in_every_order(biases<Half>);
  check_transpose_orders<Half, Half>();
  check_transpose_orders<Half, float>();
  check_transpose_orders<float, Half>();
}

/// Runs the kernels that only cudnn or only nhwc uses, and kernels that no backend uses.
void check_other_orders() {
  check_orders_of_halves<cuda_host::F16>();
  check_orders_of_halves<cuda_host::BF16>();
  check_transpose_orders<float, float>();
  const auto rows = []<class T>(T) {
    const std::vector<T> ids = {0, 2, 1, 1, 0, 2};
    std::vector<T> to(18);
    cuda_host::recurrent_one_hot<T>(nullptr, {ids.data(), 2, 1, 3, 1, 3}, {}, 3, to.data());
    std::vector<T> out(cuda_host::peak_threads);
    cuda_host::peak<T>(nullptr, out.data(), 1, 1, T(0.5), T(0.5));
    to.insert(to.end(), out.begin(), out.end());
    return to;
  };
  check_in_every_order([&] { return rows(0.0F); });
  check_in_every_order([&] { return rows(0.0); });
  cuda_host::delay(nullptr, 1);
}

/// The difference between this program's addresses in memory and in its file.
std::uintptr_t load_offset() {
  std::uintptr_t offset = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* program, std::size_t, void* to) {
        *static_cast<std::uintptr_t*>(to) = program->dlpi_addr;
        return 1;  // the first entry is the program
      },
      &offset);
  return offset;
}

/// The names of the kernels in this program, with template arguments, by address.
std::map<const void*, std::string> kernels_compiled() {
  const std::string command = "nm -C '" + std::filesystem::read_symlink("/proc/self/exe").string() + "'";
  const std::unique_ptr<FILE, int (*)(FILE*)> nm(popen(command.c_str(), "r"), pclose);
  REQUIRE(nm != nullptr);
  const std::regex kernel(
      R"(^([0-9a-f]+) [tTwW] ((?:void )?lamina::cuda_host::\(anonymous namespace\)::\w+_kernel[<(].*)$)");
  std::map<const void*, std::string> all;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), nm.get()) != nullptr) {
    const std::string text(line.data(), std::strcspn(line.data(), "\n"));
    std::smatch parts;
    if (text.find("_kernel") == std::string::npos || text.find("{lambda") != std::string::npos ||
        text.find("[clone") != std::string::npos || !std::regex_match(text, parts, kernel))
      continue;
    all[reinterpret_cast<const void*>(std::stoull(parts[1], nullptr, 16) + load_offset())] = parts[2];
  }
  return all;
}

}  // namespace

TEST_CASE(
    "every op and update has the same bits in every order of blocks and threads, and every kernel instance runs") {
  const std::set<const void*> before = host::instances_run();  // kernels that earlier tests of this process ran
  const auto backend = make_backend("cuda-host");
  std::vector<Case> cases = kernel_cases();
  for (const Shape& shape : {Shape{1, 3, 7, 9}, Shape{2, 4, 4, 6}})
    for (const Mode mode : {Mode::training, Mode::inference})
      cases.push_back({"without a bound", BatchNorm{}, {shape}, {{Pointwise{Function::silu}}}, mode});
  for (const Case& c : cases)
    for (const DType dtype : {DType::f64, DType::f32, DType::f16, DType::bf16})
      for (const bool adds : {false, true}) {
        const bool products = std::holds_alternative<Conv>(c.op) || std::holds_alternative<Recurrent>(c.op);
        if (is_half(dtype) && products) continue;  // half-precision products are computed in f32
        if (!adds || c.mode == Mode::training) check_orders(*backend, c, dtype, adds);
      }
  for (const DType dtype : element_types()) check_update_orders(backend, dtype, 0);
  check_update_orders(backend, DType::f32, 2);
  check_other_orders();
  cuda_host::check_1x1_in_packs();
  cuda_host::check_1x1_singly();
  cuda_host::check_implicit_gemm_at_edges();
  cuda_host::check_implicit_gemm_by_taps();
  cuda_host::check_gemm_tiles();

  const std::map<const void*, std::string> compiled = kernels_compiled();
  const std::set<const void*> run = host::instances_run();
  CHECK(compiled.size() > 300);
  for (const auto& [address, name] : compiled)
    if (!run.contains(address)) FAIL_CHECK("never ran, so add a case that runs it: " << name);
  for (const void* address : run)
    CHECK((compiled.contains(address) || before.contains(address)));  // a kernel's name must end in _kernel
}
