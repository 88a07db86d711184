// The exit status and the message for wrong use, and for files that cannot be written or read. The help of subcommands.

#include <fstream>
#include <map>

#include "ended.h"
#include "tests/support/data.h"
#include "tests/support/onnx_model.h"

using Catch::Matchers::ContainsSubstring;
using namespace lamina::test;

namespace {

/// A command, the status that it ends with, and words of its output.
struct Line {
  std::string command;
  int status;
  std::string words;
};

/// Lines of a section of tests/data/bench_lines.txt.
std::vector<Line> lines_of(const std::string& section) {
  std::ifstream file(data("bench_lines.txt"));
  std::vector<Line> lines;
  bool here = false;
  for (std::string line; std::getline(file, line);) {
    const std::size_t bar = line.find(" | ");
    if (line.starts_with("# ")) here = line == "# " + section;
    if (!here || bar == std::string::npos) continue;
    std::string words = line.substr(2, bar - 2);
    if (words.ends_with("\\n")) words.replace(words.size() - 2, 2, "\n");
    lines.push_back({line.substr(bar + 3), std::stoi(line), words});
  }
  REQUIRE_FALSE(lines.empty());
  return lines;
}

/// The means of the channels of small images.
std::string means() { return bytes_of("x[batch,3,16,16] m = GlobalAveragePool(x) y = Flatten(m)"); }

/// Runs each line in a shell, in a folder that at first has only means.onnx, other/means.onnx and junk.onnx. $bench is
/// the program, $rows are flags for two quick rows. `once` runs a command. Its status is 99 if the command leaves a
/// file `out` or prints more than one line, so that it did not refuse at once. `nested` prints JSON that is nested too
/// deeply.
void check_lines(const std::vector<Line>& lines) {
  const Folder folder;
  std::filesystem::create_directory(folder / "other");
  for (const char* name : {"means.onnx", "other/means.onnx"}) lamina::test::write(folder / name, means());
  lamina::test::write(folder / "junk.onnx", "junk");
  const std::string names = "cd " + folder.path().string() +
                            "; bench=" LAMINA_BENCH
                            "; rows='--backend=eigen --batch=2 --passes=1 --benchmark_filter=net/mnist_mlp/(f|t)'"
                            R"sh(; nested() { printf '{"a":%.0s' $(seq 50000); printf 1; printf '}%.0s' $(seq 50000); }
once() {
  said=$("$@" 2>&1); status=$?
  echo "$said"
  [ ! -e out ] && [ "$(wc -l <<<"$said")" = 1 ] || return 99
  return $status
}
)sh";
  for (const auto& [command, status, words] : lines) {
    std::ofstream(folder / "line") << names << command;
    const Ended ended = run_program("bash " + folder.file("line"), "");
    CAPTURE(command, ended.said);
    CHECK(ended.status == status);
    CHECK_THAT(ended.said, ContainsSubstring(words));
  }
}

}  // namespace

TEST_CASE("wrong use ends with status 2, and a message that says what is wrong and what is right") {
  check_lines(lines_of("wrong use"));
}

TEST_CASE("every subcommand that takes a type takes half precision") {
  for (const auto& [verb, words] : std::map<std::string, const char*>{
           {"run --batch=2 --passes=1 mnist_mlp", "net/mnist_mlp/total/eigen/bf16/nchw/batch:2"},
           {"ledger --batch=2 --passes=1 mnist_mlp", "mnist_mlp on eigen, batch 2, bf16"},
           {"frontier --batch=2 --passes=1 --width_divisor=8 mnist_mlp", "mnist_mlp on eigen, batch 2, bf16"},
           {"memory --batch=2 mnist_mlp", "mnist_mlp on eigen, batch 2, bf16"},
           {"describe --batch=2 mnist_mlp", "mnist_mlp on eigen, batch 2, bf16"},
           {"sweep --batch=2 --passes=1 --benchmark_out=$RANDOM.json mnist_mlp", "mnist_mlp on eigen, bf16 nchw"},
           {"fully_connected --input=2x8x1x1 --outputs=3 --passes=1", "fully_connected(3) of 2x8x1x1, bf16"},
           {"train --epochs=1 --share=0.01 mnist_mlp", "epoch 1/1"}})
    check_lines({{"$bench " + verb + " --dtype=bf16 --backend=eigen", 0, words}});
  check_lines({{"$bench train --epochs=1 --share=0.01 --dtype=f16 --backend=cuda-host mnist_mlp", 0, "epoch 1/1"},
               {"$bench memory mnist_cnn --backend=eigen --dtype=bf16 --max_error=0.001", 1,
                "eigen: conv(32, 3x3): values of bf16 have relative rounding errors of up to 0.00390625, above 0.001"},
               {"$bench $rows --dtype=bf16 --benchmark_out=a.json; $bench $rows --dtype=f16 --benchmark_out=b.json; "
                "$bench compare a.json b.json",
                2, "no row in common"}});
}

TEST_CASE("a file that cannot be written or read is an error with a message, and no row is lost") {
  check_lines(lines_of("outputs and files"));
}

TEST_CASE("run is the default subcommand, and each subcommand has its own help") {
  const std::string list = " --benchmark_list_tests", total = " --benchmark_filter=net/mnist_mlp/total";
  CHECK(said_by(list + total) == said_by("run" + list + total));
  const std::string all = said_by("--help");
  for (const std::string name :
       {"run", "ledger", "frontier", "memory", "describe", "networks", "devices", "engines", "train"}) {
    CHECK_THAT(all, ContainsSubstring("\n  " + name + " "));
    said_by(name + " --help", 0, "lamina_bench " + name);
  }
  CHECK_THAT(said_by("frontier --help", 0, "measured"), !ContainsSubstring("--measure "));
  CHECK_THAT(said_by("run --help", 0, "guarantee"), ContainsSubstring("net/<net>/"));
  CHECK_THAT(said_by("--version", 0, "lamina_bench "), ContainsSubstring("Google Benchmark 1."));
  const std::string named = said_by("mnist_mlp" + list, 0, "net/mnist_mlp/total/");
  CHECK(named == said_by("run mnist_mlp" + list));
  CHECK_THAT(named, !ContainsSubstring("net/mnist_cnn/"));
}
