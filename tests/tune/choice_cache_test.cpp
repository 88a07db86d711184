// Measured choices in a file: reading and writing, refused files, and several writers.

#include "lamina/tuning.h"

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "lamina/nets.h"
#include "tests/io/files.h"
#include "tests/support/backend.h"
#include "tests/support/cases/unit.h"
#include "tests/support/catch.h"

using namespace lamina::test;

namespace {

/// Keys that differ from the first in some part. Some texts would be equal if they lacked the lengths of the parts.
std::vector<ChoiceKey> keys() {
  const ChoiceKey plain{"b", "d", "v", "conv(8, 3x3)", {.workspace_limit = 1000}};
  std::vector<ChoiceKey> all(13, plain);
  all[1].backend = "other";
  all[2].device = "other \"device\"\n\xE2\x82\xAC";
  all[3].version = "9.19";
  all[4].unit = "conv(8, 3x3) + relu";
  all[5].asked.algorithm = {"", "direct", ""};
  all[6].asked.algorithm = {"direct", "", ""};
  all[7].asked.math = Math::tf32;
  all[8].asked.deterministic = true;
  all[9].asked.max_error = 1e-3 / 3;
  all[10].asked.workspace_limit = ~std::size_t{0};
  all[11].backend = "b d";
  all[11].device = "";
  all[12].asked.max_error = 0;
  return all;
}

Algorithms algorithms(int i) { return {"forward_" + std::to_string(i), "", "data_" + std::to_string(i)}; }

Spec conv_spec(const Case& c = {"", Conv{.channels = 4, .kernel = 3}, {{2, 3, 8, 8}}}) {
  return *make_spec(oracle(), c, {});
}

std::string document(const std::string& choices, const std::string& head = R"("format_version":2)") {
  return R"({"format":"lamina choices",)" + head + R"(,"choices":[)" + choices + "]}";
}

/// An entry of the file with one field replaced, or left out if `value` is empty.
std::string entry(const std::string& name, const std::string& value) {
  const std::pair<const char*, std::string> fields[] = {
      {"backend", R"("eigen")"},
      {"device", R"("d")"},
      {"version", R"("v")"},
      {"unit", R"("u")"},
      {"named", R"({"forward":"","backward_params":"","backward_data":""})"},
      {"math", R"("strict")"},
      {"deterministic", "false"},
      {"max_error", "null"},
      {"workspace_limit", "5"},
      {"algorithm", R"({"forward":"a","backward_params":"b","backward_data":"c"})"}};
  std::string text;
  for (const auto& [field, good] : fields) {
    const std::string& shown = field == name ? value : good;
    if (!shown.empty()) text += (text.empty() ? "\"" : ",\"") + std::string(field) + "\":" + shown;
  }
  return "{" + text + "}";
}

}  // namespace

TEST_CASE("different units have different texts, and a text describes its unit") {
  const Spec plain = conv_spec();
  CHECK(to_string(plain) ==
        "conv(4, 3x3), x 2x3x8x8 f64 nchw, y 2x4x6x6 f64 nchw, w 4x3x3x3 f64 nchw, w 1x4x1x1 f64 nchw, training, "
        "wants dx 1, adds dx 0");
  std::vector<Spec> others(16, plain);
  others[0].op = Conv{.channels = 4, .kernel = 3, .bias = false};
  others[1].tail = {Relu{}};
  others[2].x[0].shape.n = 3;
  others[3].x[0].layout = Layout::nhwc;
  others[4].x[0].pitch += 1;
  others[5].x[0].gradient_pitch += 1;
  others[6].y.dtype = DType::f32;
  others[7].w[1].shape.c = 5;
  others[8].state = others[8].w;
  others[9].wants_dx = {false};
  others[10].adds_dx = {true};
  others[11].adds_dw = true;
  others[12].mode = Mode::inference;
  others[13].x.push_back(others[13].x[0]);
  others[14].masks_dx = true;
  others[15].dy_is_masked = true;
  others.push_back(plain);
  for (std::size_t i = 0; i < others.size(); ++i)
    for (std::size_t j = 0; j < others.size(); ++j) {
      CAPTURE(i, j, to_string(others[i]));
      CHECK((to_string(others[i]) == to_string(others[j])) == (others[i] == others[j]));
    }
}

TEST_CASE("choices are read back from their file, each with its own key") {
  const Folder folder;
  const auto all = keys();
  {
    ChoiceCache cache(folder / "choices.json");
    CHECK(cache.entries().empty());
    for (std::size_t i = 0; i < all.size(); ++i) cache.remember(all[i], algorithms(static_cast<int>(i)));
    cache.save();
  }
  const ChoiceCache cache(folder / "choices.json");
  CHECK(cache.entries().size() == all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    REQUIRE(cache.find(all[i]).has_value());
    CHECK(*cache.find(all[i]) == algorithms(static_cast<int>(i)));
  }
  ChoiceKey unknown = all[0];
  unknown.unit += " ";
  CHECK_FALSE(cache.find(unknown).has_value());
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a file of an earlier version has no choices, and new measurements replace it") {
  const Folder folder;
  write(folder / "c.json", R"({"format":"lamina choices","format_version":1,"picks":{}})");
  ChoiceCache cache(folder / "c.json");
  CHECK(cache.entries().empty());
  cache.remember(keys()[0], algorithms(0));
  cache.save();
  CHECK(ChoiceCache(folder / "c.json").find(keys()[0]) == algorithms(0));
}

TEST_CASE("a read-only file is read, and missing choices are measured and kept in memory") {
  const Folder folder;
  const Spec spec = conv_spec();
  const Choice known, unknown{.deterministic = true};
  const auto measured = [](const char* name) {
    return [name] { return MeasuredChoice{{.algorithm = {name, "", ""}}}; };
  };
  ChoiceCache(folder / "c.json").find_or_measure(oracle(), spec, {.joins_gradients = false}, measured("direct"));
  const std::string before = contents(folder / "c.json");
  const bool whole_folder = GENERATE(false, true);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(whole_folder ? 0555 : 0777));
  std::filesystem::permissions(folder / "c.json", std::filesystem::perms(whole_folder ? 0666 : 0444));
  const pid_t child = fork();
  if (child == 0) {  // root could write to the file
    if (geteuid() == 0 && seteuid(65534) != 0) _exit(77);
    try {
      ChoiceCache cache(folder / "c.json");
      const auto ask = [&](const Choice& asked, const char* name) {
        return cache.find_or_measure(oracle(), spec, asked, measured(name)).choice.algorithm[0];
      };
      const bool held = ask(known, "im2col_gemm") == "direct" && ask(unknown, "im2col_gemm") == "im2col_gemm" &&
                        ask(unknown, "direct") == "im2col_gemm";
      _exit(held ? 0 : 1);
    } catch (...) {
      _exit(2);
    }
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  std::filesystem::permissions(folder.path(), std::filesystem::perms(0777));
  CHECK(status == 0);
  CHECK(contents(folder / "c.json") == before);
}

TEST_CASE("saving keeps choices that other processes have saved, and replaces choices that were measured again") {
  const Folder folder;
  const auto all = keys();
  ChoiceCache one(folder / "c.json"), other(folder / "c.json");
  one.remember(all[0], algorithms(0));
  one.remember(all[1], algorithms(1));
  one.save();
  other.remember(all[1], algorithms(7));
  other.remember(all[2], algorithms(2));
  other.save();
  const ChoiceCache both(folder / "c.json");
  CHECK(both.find(all[0]) == algorithms(0));
  CHECK(both.find(all[1]) == algorithms(7));
  CHECK(both.find(all[2]) == algorithms(2));
}

TEST_CASE("several writers at the same time lose no choice") {
  const Folder folder;
  const auto all = keys();
  std::vector<std::thread> writers;
  for (const ChoiceKey& mine : all)
    writers.emplace_back([&] {
      for (int round = 0; round < 5; ++round) {
        ChoiceCache cache(folder / "c.json");
        ChoiceKey key = mine;
        key.unit += std::to_string(round);
        cache.remember(key, algorithms(round));
        cache.save();
      }
    });
  for (std::thread& writer : writers) writer.join();
  CHECK(ChoiceCache(folder / "c.json").entries().size() == 5 * all.size());
}

TEST_CASE("a file that is no file of choices is an error that names the file and the fault") {
  const Folder folder;
  struct Bad {
    const char* what;
    std::string bytes;
    const char* says;
  };
  const std::string good = entry("", "");
  const std::vector<Bad> files = {
      {"empty", "", "empty"},
      {"truncated", document(good).substr(0, 100), "not JSON"},
      {"no JSON", "choices", "not JSON"},
      {"a list", "[]", "not a file of choices"},
      {"another format", R"({"format":"weights"})", "not a file of choices"},
      {"no format", R"({"choices":[]})", "no \"format\""},
      {"a later version", document(good, R"("format_version":3)"), "this library reads 2"},
      {"a version in words", document(good, R"("format_version":"2")"), "this library reads 2"},
      {"no version", R"({"format":"lamina choices","choices":[]})", "no \"format_version\""},
      {"no list", R"({"format":"lamina choices","format_version":2,"choices":{}})", "\"choices\""},
      {"an entry that is a number", document("7"), "choice 1: not an object"},
      {"the same key twice", document(good + "," + good), "choice 2: its key occurs twice"},
      {"no backend", document(entry("backend", "")), "choice 1: no \"backend\""},
      {"a unit that is a number", document(good + "," + entry("unit", "3")), "choice 2: \"unit\""},
      {"an unknown math", document(entry("math", R"("fast")")), R"("math" is "fast")"},
      {"determinism as a number", document(entry("deterministic", "1")), "neither true nor false"},
      {"a negative error", document(entry("max_error", "-1")), "\"max_error\""},
      {"an error in words", document(entry("max_error", R"("low")")), "\"max_error\""},
      {"a negative limit", document(entry("workspace_limit", "-1")), "\"workspace_limit\""},
      {"one algorithm for all", document(entry("algorithm", R"("direct")")), "\"algorithm\""},
      {"a pass too few", document(entry("algorithm", R"({"forward":"a","backward_data":"b"})")),
       "no \"backward_params\""},
  };
  for (const Bad& bad : files) {
    CAPTURE(bad.what, bad.bytes);
    const auto file = folder / "bad.json";
    write(file, bad.bytes);
    CHECK_THROWS_MATCHES(ChoiceCache(file), FileError, Says(file.string(), bad.says));
  }
  write(folder / "good.json", document(good));
  CHECK(ChoiceCache(folder / "good.json").entries().size() == 1);
}

TEST_CASE("a damaged file is not replaced") {
  const Folder folder;
  ChoiceCache cache(folder / "c.json");
  cache.remember(keys()[0], algorithms(0));
  write(folder / "c.json", "notes of someone else");
  CHECK_THROWS_AS(cache.save(), FileError);
  CHECK(contents(folder / "c.json") == "notes of someone else");
}

TEST_CASE("a folder as the file, and a file in a missing folder, are errors that name the path") {
  const Folder folder;
  CHECK_THROWS_WITH(ChoiceCache(folder.path()), ContainsSubstring(folder.path().string()));
  ChoiceCache cache(folder / "none/c.json");
  cache.remember(keys()[0], algorithms(0));
  CHECK_THROWS_WITH(cache.save(), ContainsSubstring((folder / "none/c.json").string()));
}

TEST_CASE("a measured choice is not measured again, unless its algorithm is gone") {
  const Folder folder;
  const Spec spec = conv_spec();
  int measurements = 0;
  const auto measured = [&](const char* name) {
    return [&measurements, name] {
      ++measurements;
      return MeasuredChoice{{.algorithm = {name, name, name}}};
    };
  };
  const auto ask = [&](const Choice& asked, const char* name) {
    ChoiceCache cache(folder / "c.json");
    return cache.find_or_measure(oracle(), spec, asked, measured(name)).choice.algorithm;
  };
  CHECK(ask({}, "direct") == Algorithms{"direct", "direct", "direct"});
  CHECK(ask({}, "im2col_gemm") == Algorithms{"direct", "direct", "direct"});
  CHECK(measurements == 1);
  Choice frugal;
  frugal.workspace_limit = 0;
  CHECK(ask(frugal, "gone")[0] == "gone");
  CHECK(ask(frugal, "direct")[0] == "direct");
  CHECK(measurements == 3);
}

TEST_CASE("the calls of a plan have the declared properties of their algorithms") {
  Graph graph("one");
  const Value x = graph.input({1, 3, 8, 8});
  conv(x, "c", {.channels = 4, .kernel = 3});
  const Plan plan(graph, oracle(), {.choice = {.algorithm = {"im2col_gemm", "im2col_gemm", "im2col_gemm"}}});
  std::size_t largest = 0;
  for (const Call& call : plan.calls()) {
    CHECK(call.deterministic);
    CHECK(call.math == Math::strict);
    CHECK(call.max_error > 0);
    CHECK(call.max_error < 1e-4);
    largest = std::max(largest, call.workspace_bytes);
  }
  CHECK(largest == plan.memory().workspace);
}
