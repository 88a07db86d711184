// Which flags go together, and what is said of those that do not.

#include <fstream>
#include <map>

#include "ended.h"
#include "tests/support/catch.h"
#include "tests/support/onnx_model.h"

using Catch::Matchers::ContainsSubstring;
using namespace lamina::test;

namespace {

/// What is typed, how it ends, and words of what it says.
struct Line {
  std::string command;
  int status;
  const char* words;
};

/// The means of the channels of small images.
std::string means() { return bytes_of("x[batch,3,16,16] m = GlobalAveragePool(x) y = Flatten(m)"); }

/// Lets a shell run each line in a folder that has means.onnx twice, junk.onnx, and is else empty at
/// first. $bench is the program, $rows are flags for two quick rows. `once` runs a command, and ends with status 99
/// where it says more than a line, as it began something, or leaves a file `out`. nested prints JSON that is too deep.
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

TEST_CASE("wrong use ends with status 2, and words on what is wrong and what is right") {
  check_lines({
      {"$bench networks --benchmark_out=rows.json", 2,
       "accepted by: run, ledger, frontier, compare, sweep, memory, engines, train"},
      {"$bench networks --batch=2", 2,
       "accepted by: run, ledger, frontier, check, sweep, memory, describe, engines, train"},
      {"$bench devices --backend=eigen", 2,
       "accepted by: run, ledger, frontier, check, sweep, memory, describe, train"},
      {"$bench devices --image=64", 2, "devices: unknown option --image"},
      {"$bench memory alexnet --passes=3", 2, "accepted by: run, ledger, frontier, sweep"},
      {"$bench --format=csv", 2, "accepted by: ledger, frontier, compare, memory, describe, networks, devices, conv"},
      {"$bench --device=h200", 2, "accepted by: engines"},
      {"$bench frontier alexnet --measure", 2, "accepted by: run, ledger, check, memory, describe"},
      {"$bench frontier alexnet --max_error=1e-6", 2, "accepted by: run, ledger, check, sweep, memory, describe"},
      {"$bench ledger alexnet --pases=3", 2, "--passes"},
      {"$bench conv --input=1x8x5x5 --channels=8 --kernel=3x", 2, "rows and columns as 1x7, not \"3x\""},
      {"$bench ledger alexnet --dtype=f32,f64", 2, "one --dtype and one --layout"},
      {"$bench describe alexnet --keep=cheap", 2, "--keep requires --backend"},
      {"$bench compare --paired=rows.json --any_load", 2, "--paired excludes --any_load"},
      {"$bench --quick", 2, "--table"},
      {"$bench means.onnx", 2, "means.onnx is no name of a network; a file is given by --onnx=means.onnx"},
      {"$bench describe other/means", 2, "by --onnx=other/means"},
      {"$bench memory means.onnx", 2, "by --onnx=means.onnx"},
      {"$bench ledger alexnet,means.onnx --backend=eigen", 2, "by --onnx=means.onnx"},
      {"$bench train means.onnx", 2, "by --onnx=means.onnx"},
      {"BENCHMARK_MIN_TIME=soon $bench alexnet", 2, "; the environment has BENCHMARK_MIN_TIME=soon"},
      {"$bench --table --quick --benchmark_filter=alexnet", 2, "--quick"},
      {"$bench --choice_cache=c.json --instruction_set=generic", 2, "--measure"},
      {"$bench --backend=cuda-host --instruction_set=x86-64-v3", 2,
       "--instruction_set applies to eigen, which --backend does not"},
      {"$bench --benchmark_filer=x", 2, "--benchmark_filter"},
      {"$bench --benchmark_filter=net/resnet5/totl", 2, "net/resnet50/total"},
      {"$bench --benchmark_filter='('", 2, "regular expression"},
      {"$bench --benchmark_context=no_value", 2, "--benchmark_context"},
      {"$bench ledger", 2, "networks"},
      {"$bench describe resnet5", 2, "resnet50"},
      {"$bench memory vgg61", 2, "vgg16"},
      {"$bench frontier resnet5", 2, "resnet50"},
      {"$bench train mnist_mlq", 2, "mnist_mlp"},
      {"$bench --backend=eigne", 2, "eigen"},
      {"$bench --batch=0", 2, "--batch"},
      {"$bench --threads=two", 2, "--threads"},
      {"$bench --max_error=-1", 2, "--max_error"},
      {"$bench --dtype=f8", 2, "f64,f32,f16,bf16"},
      {"$bench check mnist_mlp --dtype=bf16", 2, "check_gradients: values are rounded to bf16"},
      {"$bench networks --format=xml", 2, "text,csv"},
      {"$bench --math=fast", 2, "strict"},
      {"$bench --cudnn=no_such_place", 2, "--cudnn=no_such_place: there is no such directory"},
      {"$bench --cudnn=.,..", 2, "bench/race/versions"},
      {"$bench --backend=eigen,eigen", 2, "--backend names eigen twice"},
      {"$bench --batch=2,4,2", 2, "--batch names 2 twice"},
      {"$bench --dtype=f64,f64", 2, "--dtype names f64 twice"},
      {"$bench --layout=nchw,NCHW", 2, "--layout names nchw twice"},
      {"$bench describe alexnet,alexnet", 2, "alexnet twice"},
      {"$bench sweep mnist_mlp --benchmark_out=/dev/null --thread_counts=1,2,1", 2, "--thread_counts names 1 twice"},
      {"$bench sweep mnist_mlp --benchmark_out=/dev/null --images=28,28", 2, "--images names 28 twice"},
      {"$bench --image=5 --benchmark_filter=net/vgg16/total", 2, "vgg16 (32 or more)"},
      {"$bench vgg16 --image=1", 2, "vgg16 (32 or more)"},
      {"$bench resnet18 --image=100000", 2, "graph \"resnet18\", node \"input\""},
      {"$bench --benchmark_filter=net/resnet18/ --image=100000", 2, "resnet18 (graph \"resnet18\", node \"input\""},
      {"$bench resnet18 --image=1 --batch=1", 2, "resnet18: node bn1: batch_norm of 1x64x1x1 has one value"},
      {"$bench ledger mnist_mlp --benchmark_filter=mlp", 2, "accepted by: run"},
      {"$bench frontir alexnet", 2, "frontier"},
      {"$bench resnet5", 2, "did you mean \"resnet50\""},
      {"$bench run resnet5", 2, "did you mean \"resnet50\""},
      {"$bench resnet18,resnet5", 2, "\"resnet5\""},
      {"$bench run resnet18 --table --quick", 2, "--quick"},
      {"$bench --benchmark_out= --passes=2", 2, "--benchmark_out= has no value"},
      {"$bench --benchmark_filter= ", 2, "--benchmark_filter= has no value"},
      {"$bench --benchmark_out \"\"", 2, "an empty word has no value"},
      {"$bench --passes=1000000000", 2, "--passes"},
      {"$bench --noise=2", 2, "takes a share above 0, as 3%"},
      {"$bench --noise=2% --passes=3", 2, "--passes"},
      {"$bench --threads=1025", 2, "0 to 1024"},
      {"$bench sweep mnist_mlp --benchmark_out=/dev/null --thread_counts=1025", 2, "1 to 1024"},
      {"$bench sweep mnist_mlp --benchmark_out=/dev/null --longest_pass=nan", 2, "above 0"},
      {"$bench train mnist_mlp --usd_per_hour=nan", 2, "above 0"},
      {"$bench train mnist_mlp --usd_per_hour=inf", 2, "above 0"},
      {"$bench --max_error=nan", 2, "nan is no number above 0 and at most 1"},
      {"$bench --softmax --no_softmax", 2, "exclude each other"},
      {"$bench --accumulate --no_accumulate", 2, "exclude each other"},
      {"$bench --benchmark_filter=$(head -c 100000 /dev/zero | tr '\\0' a)", 2,
       "has 100000 characters, and may have 4096"},
      {"$bench --benchmark_filter=-.", 2, "matches none"},
      {"$bench --benchmark_time_unit=days", 2, "ns,us,ms,s"},
      {"$bench --benchmark_min_time=0", 2, "above 0"},
      {"$bench --benchmark_min_warmup_time=x", 2, "unknown to lamina_bench and to Google Benchmark"},
      {"$bench --benchmark_enable_random=true", 2, "unknown to lamina_bench and to Google Benchmark"},
      {"$bench --workspace_limit=-1", 2, "--workspace_limit"},
      {"$bench --memory_limit=lots", 2, "takes bytes, as 4GiB, 1.5GiB or 500MB"},
      {"$bench --memory_limit=4XB", 2, "takes bytes"},
      {"$bench --memory_limit=nan", 2, "takes bytes"},
      {"$bench --memory_limit=0", 2, "takes bytes"},
      {"$bench --memory_limit=1e30", 2, "takes bytes"},
      {"$bench memory mnist_mlp --optimiser=adamm", 2, "keras_adam"},
      {"$bench conv --input=2x8x5x5 --channels=6 --kernel=9 --pad=1", 2, "a window of 9 rows does not fit into 7"},
      {"$bench conv --input=2x8x5x5 --channels=6 --kernel=3 --groups=3", 2, "8 input channels do not divide by groups"},
      {"$bench conv --input=2x8x5x5 --channels=6 --kernel=3 --strid=2", 2, "did you mean \"--stride\"?"},
      {"$bench conv --input=2x8x5x5 --channels=6 --kernel=3x3x3", 2, "takes a number, or rows and columns as 1x7, not"},
      {"$bench conv --input=2x8x5x5 --channels=6", 2, "--kernel is required"},
      {"$bench max_pool --input=2x8x5 --window=2 --stride=2", 2, "columns as 16x64x56x56, not \"2x8x5\""},
      {"$bench check conv --input=2x8x5x5 --channels=6 --kernel=9", 2, "a window of 9 rows does not fit into 5"},
      {"$bench check conv --input=2x8x5x5 --channels=6 --kernel=3 --batch=7", 2, "--batch is of networks; a layer is"},
      {"once $bench batch_norm --input=1x8x1x1", 2, "one value per channel"},
      {"once $bench check batch_norm --input=1x8x1x1", 2, "one value per channel"},
      {"echo batch_norm --input=1x8x1x1 >g; once $bench layers g", 2, "one value per channel"},
      {"$bench check mnist_mlp --directions=0", 2, "--directions"},
      {"$bench check mnist_mlp --inference", 2, "accepted by: ledger, frontier, sweep, memory, describe"},
      {"echo conv --input=2x8x5x5 --channels=6 --kernel=9 >g; $bench layers g", 2,
       "g:1: graph \"layer\", node \"conv\""},
      {"printf '\ncnv --input=2x8x5x5\n' >g; $bench layers g", 2, "g:2: no layer \"cnv\": did you mean \"conv\"?"},
      {"printf 'batch_norm --input=2x8x5x5\n%.0s' 1 2 >g; $bench layers g", 2, "batch_norm of 2x8x5x5 twice"},
      {"echo '# none' >g; $bench layers g", 2, "g has no line of a layer"},
      {"once $bench train resnet5", 2, "resnet50"},
      {"once $bench train resnet50", 2, "give --data"},
      {"once $bench train mnist_mlp,mnist_mlp", 2, "train names mnist_mlp twice"},
      {"once $bench train mnist_mlp --seeds=2 --checkpoint=out", 2, "--checkpoint is of one training"},
      {"once $bench train mnist_mlp --batch=8", 2, "mnist_mlp has its published ones"},
      {"once $bench train mnist_mlp --target=98", 2, "for per cent say 0.98"},
      {"once $bench train mnist_mlp --target=-0.5", 2, "--target"},
      {"once $bench train mnist_mlp --target=nan", 2, "--target"},
      {"once $bench train mnist_mlp --checkpoint=out --json=./out", 2, "name one file"},
      {"once $bench train mnist_mlp --json=out --checkpoint=out", 2, "name one file"},
      {"once $bench train mnist_mlp --data=. --share=0.5", 2,
       "--share is for synthetic sets; leave it out with --data"},
      {"once $bench train --onnx=means.onnx --data=. --share=0.5", 2, "--share is for synthetic sets"},
      {"once $bench train mnist_mlp --share=0", 2, "it should be above 0, and at most 16"},
      {"once $bench train resnet18 --share=-1", 2, "it should be above 0, and at most 16"},
      {"once $bench train --onnx=means.onnx --share=16.5", 2, "it should be above 0, and at most 16"},
      {"once $bench train mnist_mlp --onnx=means.onnx", 2, "give --data"},
      {"once $bench describe --onnx=means.onnx --image=32", 2, "--image, --width_divisor and --softmax are of"},
      {"once $bench describe --onnx=means.onnx --onnx_extents=batch=5", 2,
       "a batch of 5, and this is of one image: leave"},
      {"once $bench describe --onnx=means.onnx --onnx_extents=batch=0", 2, "--onnx_extents"},
      {"once $bench describe --onnx=means.onnx --onnx_extents=batch=12x", 2, "--onnx_extents"},
      {"once $bench describe --onnx=means.onnx --onnx_extents=batch=12,batch=13", 2, "--onnx_extents"},
      {"once $bench describe alexnet --onnx_output=y", 2, "--onnx"},
      {"once $bench memory --onnx=means.onnx --batch=4 --onnx_extents=batch=5", 2,
       "with a batch of 4: leave that name"},
      {"once $bench sweep --benchmark_out=out --images=64 --onnx=means.onnx", 2, "and --softmax are of"},
      {"once $bench sweep cifar10_cnn --benchmark_out=out --images=4", 1, "needs images of at least 10x10, not 4x4"},
      {"once $bench run --onnx=means.onnx,other/means.onnx", 2, "other/means.onnx are both called means; rename one"},
      {"once $bench describe --onnx=means.onnx,other/means.onnx", 2, "are both called means; rename one"},
      {"once $bench train --onnx=means.onnx,other/means.onnx", 2, "are both called means; rename one"},
      {"once $bench sweep --benchmark_out=out --onnx=means.onnx,other/means.onnx", 2, "are both called means; rename"},
      {"once $bench describe --onnx=means.onnx,means.onnx", 2, "means.onnx twice"},
  });
}

TEST_CASE("every verb with a type takes halves") {
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
                "eigen: conv(32, 3x3): values of bf16 are rounded by a relative error of up to 0.00390625, not 0.001"},
               {"$bench $rows --dtype=bf16 --benchmark_out=a.json; $bench $rows --dtype=f16 --benchmark_out=b.json; "
                "$bench compare a.json b.json",
                2, "no row in common"}});
}

TEST_CASE("outputs that cannot be written, and files that cannot be read, end with words, and no row is lost") {
  check_lines({
      {"$bench networks 2>&1 >/dev/full", 1, "cannot write to standard output"},
      {"$bench networks 2>&1 >&-", 1, "cannot write to standard output"},
      {"$bench --benchmark_list_tests 2>&1 >/dev/full", 1, "cannot write to standard output"},
      {"$bench $rows 2>&1 >/dev/full", 1, "cannot write to standard output"},
      {"$bench $rows --benchmark_out=a.json 2>&1 >&- || cat a.json", 0, "\"real_time\""},
      {"$bench $rows --benchmark_out=b.json 2>&- && cat b.json", 0, "\"real_time\""},
      {"$bench $rows --benchmark_out=c.json 2>/dev/full && cat c.json", 0, "\"real_time\""},
      {"$bench ledger mnist_mlp --passes=1 --backend=eigen 2>/dev/full", 0, "The whole"},
      {"$bench $rows --benchmark_out=/dev/full", 1, "No space left on device; make room"},
      {"$bench $rows --benchmark_out=/dev/full", 1, "net/mnist_mlp/total"},
      {"$bench $rows --benchmark_out_format=csv --benchmark_out=/dev/full", 1, "No space left on device; make room"},
      {"$bench $rows --benchmark_out=/proc/none/rows.json", 1, "/proc/none"},
      {"$bench $rows --image=1 --batch=1", 0, "net/mnist_mlp/total/eigen/f32/nchw/batch:1/image:1"},
      {"$bench alexnet,resnet18 --image=1 --batch=2 --width_divisor=8 --passes=1", 0, "alexnet (39 or more)"},
      {R"(echo '{"context":{"processor":'$(nested)'},"benchmarks":[]}' >d.json; $bench compare d.json d.json)", 1,
       "d.json holds no row with its passes"},
      {R"(echo '{"format":"lamina choices","format_version":'$(nested)'}' >d.json; $bench $rows --measure --choice_cache=d.json)",
       1, "this library reads"},
      {"$bench ${rows/=1 /=100000 } --benchmark_out=e.json >none 2>&1 & until grep -q warming none; do sleep 0.1; "
       "done\n"
       "$bench $rows --benchmark_out=e.json; s=$?; kill $!; wait; exit $s",
       1, "another lamina_bench writes this file now"},
      {"ulimit -v 1500000; $bench --benchmark_filter=net/vgg16/total --batch=64 --backend=eigen --threads=1", 1,
       "bytes of address space (ulimit -v)"},
      {"echo '{' >f.json; $bench resnet50 --measure --choice_cache=f.json", 1, "--choice_cache=f.json: "},
      {"$bench resnet50 --measure --choice_cache=none/c.json", 2, ": there is no folder none; make it first"},
      {"$bench --onnx=means.onnx --batch=1,3 --benchmark_list_tests", 0, "net/means/forward/eigen/f32/nchw/batch:3\n"},
      {"$bench --onnx=means.onnx --batch=1,3 --benchmark_list_tests | grep -vc /means/", 1, "0\n"},
      {"ulimit -t 2; $bench memory resnet18 --backend=eigen --batch=1000000000 --memory_limit=1048576TiB", 0,
       "inputs              581848144.53   578033447.27"},
      {"$bench $rows --cuda_graph", 1, "Unsupported: this device cannot record"},
      {"$bench $rows --cuda_graph", 1, "net/mnist_mlp/forward/eigen/f32/nchw/batch:2/graph "},
      {"$bench $rows --benchmark_list_tests --workspace_limit=0", 0, "/workspace_limit:0\n"},
      {"$bench $rows --benchmark_list_tests --workspace_limit=4096", 0, "/workspace_limit:4096\n"},
      {"$bench $rows --benchmark_list_tests --workspace_limit=2MB", 0, "/workspace_limit:2000000\n"},
      {"$bench $rows --benchmark_list_tests --workspace_limit=1.5GiB", 0, "/workspace_limit:1610612736\n"},
      {"$bench $rows --benchmark_list_tests --workspace_limit=4GiB", 0, "/workspace_limit:4294967296\n"},
      {"touch plain; once $bench train mnist_mlp --json=plain/run", 1, "plain"},
      {"once $bench train mnist_mlp --json=plain/run", 1, "plain"},
      {"once $bench train mnist_mlp --checkpoint=plain/run", 1, "plain"},
      {"once $bench train mnist_mlp --onnx=junk.onnx --json=out", 1, "junk.onnx"},
      {"once $bench ledger --onnx=means.onnx,junk.onnx", 1, "junk.onnx"},
      {"once $bench frontier --onnx=means.onnx,junk.onnx", 1, "junk.onnx"},
      {"once $bench sweep --benchmark_out=out --onnx=junk.onnx", 1, "junk.onnx"},
      {"once $bench sweep --benchmark_out=out --batch=1 --onnx=junk.onnx", 1, "junk.onnx"},
      {"once $bench sweep mnist_mlp --benchmark_out=other", 1, "not a regular file"},
  });
}

TEST_CASE("without a subcommand it is run, and each has its own help") {
  const Ended plain = run_bench("--benchmark_list_tests --benchmark_filter=net/mnist_mlp/total");
  CHECK(plain.status == 0);
  CHECK(plain.said == run_bench("run --benchmark_list_tests --benchmark_filter=net/mnist_mlp/total").said);
  const Ended all = run_bench("--help");
  CHECK(all.status == 0);
  for (const char* name :
       {"run", "ledger", "frontier", "memory", "describe", "networks", "devices", "engines", "train"}) {
    CAPTURE(name);
    CHECK_THAT(all.said, ContainsSubstring(std::string("\n  ") + name + " "));
    const Ended one = run_bench(std::string(name) + " --help");
    CHECK(one.status == 0);
    CHECK_THAT(one.said, ContainsSubstring(std::string("lamina_bench ") + name));
  }
  CHECK_THAT(run_bench("frontier --help").said, ContainsSubstring("measured") && !ContainsSubstring("--measure "));
  CHECK_THAT(run_bench("run --help").said, ContainsSubstring("guarantee") && ContainsSubstring("net/<net>/"));
  CHECK_THAT(run_bench("--version").said,
             ContainsSubstring("lamina_bench ") && ContainsSubstring("Google Benchmark 1."));
  const std::string named = run_bench("mnist_mlp --benchmark_list_tests").said;
  CHECK(named == run_bench("run mnist_mlp --benchmark_list_tests").said);
  CHECK_THAT(named, ContainsSubstring("net/mnist_mlp/total/") && !ContainsSubstring("net/mnist_cnn/"));
}
