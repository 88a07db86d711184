// The subcommand `compare`: files that cannot be compared, folders of processes, variants, and its gate.

#include "bench/compare/comparison.h"

#include <filesystem>
#include <fstream>

#include "ended.h"
#include "lamina/error.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;
using lamina::test::Folder;
using nlohmann::json;

namespace {

void write(const std::string& path, const json& document) { std::ofstream(path) << document; }

/// Runs `compare`. Checks that it ends with this status and prints `why`.
std::string compared(const std::string& arguments, int status, const std::string& why = {}) {
  return test::said_by("compare " + arguments, status, why);
}

/// A file that is changed at one place, and how `compare` ends on it.
struct Damage {
  const char *name, *place;
  json value;  ///< new value; null removes the place, but a real_time becomes null
  int status;
  const char* why;
};

void refuse(const Folder& folder, const json& good, const std::string& before, const std::vector<Damage>& damages) {
  for (const Damage& one : damages) {
    const json::json_pointer place(one.place);
    json other = good;
    if (one.value.is_null() && place.back() != "real_time")
      other = other.patch({{{"op", "remove"}, {"path", one.place}}});
    else
      other[place] = one.value;
    write(folder.file(one.name), other);
    compared(before + folder.file(one.name), one.status, one.why);
  }
}

}  // namespace

TEST_CASE("files of another machine, newer format or foreign program, damaged or without a common row are refused") {
  const Folder folder;
  const json row = {{"name", "net/a"},  {"run_type", "iteration"}, {"repetition_index", 0},
                    {"real_time", 1.0}, {"time_unit", "ms"},       {"key", {{"what", "net"}}}};
  const json good = {{"context", {{"lamina_format", 1}, {"processor", "X"}}}, {"benchmarks", {row}}};
  const std::string a = folder.file("a.json"), elsewhere = folder.file("elsewhere.json");
  write(a, good);
  compared(a + " " + folder.file("none.json"), 1, "none.json");
  std::ofstream(folder.file("damaged.json")) << good.dump().substr(0, 50);
  compared(a + " " + folder.file("damaged.json"), 1, "damaged.json is damaged");
  refuse(folder, good, a + " ",
         {{"foreign.json", "", {{"results", json::array()}}, 1, "foreign.json holds no rows"},
          {"list.json", "", {1, 2}, 1, "list.json holds no rows"},
          {"newer.json", "/context/lamina_format", 3, 1, "newer.json has format 3"},
          {"unit.json", "/benchmarks/0/time_unit", "days", 1, "unit.json is damaged"},
          {"zero.json", "/benchmarks/0/real_time", 0.0, 1, "net/a has the time 0"},
          {"nan.json", "/benchmarks/0/real_time", nullptr, 1, "nan.json is damaged"},  // NaN is written as null
          {"untimed.json", "/benchmarks/0/time_unit", nullptr, 1, "time_unit"},
          {"twice.json", "/benchmarks/1", row, 1, "net/a has pass 0 twice"},
          {"race.json", "/context/variants", json::array(), 1, "race.json holds variants that took turns"},
          {"empty.json", "/benchmarks", json::array(), 1, "has no row with the times of single passes"},
          {"elsewhere.json", "/context/processor", "Y", 2, "processor: X and Y"},
          {"others.json", "/benchmarks/0/name", "net/b", 2, "no row in common"}});
  compared(a + " " + elsewhere + " --other_machine", 0);
  compared(a + " " + a + " --fail-if-slower=3", 2);
  compared(a + " " + elsewhere + " --other_machine --benchmark_out=" + a, 2, "a.json is one of the files");
  CHECK(test::read(a) == good);
}

TEST_CASE("a row's times are the same from one entry for each pass and from one entry with all passes") {
  const Folder folder;
  const auto entry = [](const char* what, int pass, double real, double cpu) {
    return json{{"name", std::string(what) + "/a"},
                {"run_type", "iteration"},
                {"repetition_index", pass},
                {"real_time", real},
                {"cpu_time", cpu},
                {"time_unit", "ms"},
                {"key", {{"what", what}}}};
  };
  const auto rows_of = [&](const char* name, const json& entries) {
    write(folder.file(name), {{"context", {{"lamina_format", 1}}}, {"benchmarks", entries}});
    return read_run_file(folder.file(name)).rows;
  };
  json each = json::array(), together = json::array();
  for (int pass = 0; pass < 3; ++pass) each.push_back(entry("net", pass, 3.0 + pass, 5.0 + pass));
  together.push_back(entry("net", 0, 4, 6));
  together.back().update({{"real_times", {3.0, 4.0, 5.0}}, {"cpu_times", {5.0, 6.0, 7.0}}});
  const auto apart = rows_of("each.json", each), joined = rows_of("together.json", together);
  CHECK(apart.at("net/a").seconds == joined.at("net/a").seconds);
  CHECK(apart.at("net/a").cpu_seconds == joined.at("net/a").cpu_seconds);
  CHECK(joined.at("net/a").seconds == std::vector{1e-3 * 3.0, 1e-3 * 4.0, 1e-3 * 5.0});
  CHECK(joined.at("net/a").cpu_seconds == std::vector{1e-3 * 5.0, 1e-3 * 6.0, 1e-3 * 7.0});

  json empty = json::array({together[0]});
  empty[0]["real_times"] = json::array();
  CHECK_THROWS_WITH(rows_of("empty.json", empty), ContainsSubstring("net/a has no real_times"));
}

TEST_CASE("lamina_bench compares folders of its own files, and a failed gate has its own exit status") {
  const Folder folder;
  const std::string one = folder.file("one.json"), before = folder.file("before"), after = folder.file("after"),
                    out = folder.file("compared.json");
  test::said_by("--backend=eigen --batch=2 --passes=9 --benchmark_filter=net/mnist_mlp/ --benchmark_out=" + one);
  json measured = test::read(one);
  for (json& entry : measured["benchmarks"])
    entry.erase("others_share");  // load by other programs must not matter here
  const auto process = [&](const std::string& side, int number, double factor) {
    std::filesystem::create_directories(side);
    json its = measured;
    for (json& entry : its["benchmarks"]) entry["real_time"] = factor * entry["real_time"].get<double>();
    write(side + "/" + std::to_string(number) + ".json", its);
  };
  for (int i = 0; i < 12; ++i) {
    process(before, i, 1 + 1e-3 * i);
    process(after, i, 2 + 1e-3 * i);
  }
  process(folder.file("far"), 0, 10);
  std::ofstream(after + "/notes.txt") << "no file of results";
  const std::string gated = " --fail-if-slower=2%", both = before + " " + after;
  compared(both + gated + " --benchmark_out=" + out, slower_status, "These rows fail the limit of 2 %");
  compared(before + " " + before + gated, 0, "No row fails the limit of 2 %");
  compared(both, 0, "grades");
  compared(both + " --benchmark_out=" + after + "/new.json", 2, "new.json is one of the files to compare, or in their");
  // With one process of each side, the times and the ratio are printed. The status says that they do not decide the
  // gate.
  const std::string single = compared(one + " " + after + "/3.json" + gated, undecided_status, "more needed");
  CHECK_THAT(single, ContainsSubstring("2.0030") && ContainsSubstring("4 of 4 rows have too few samples"));
  compared(one + " " + after + "/3.json", 0, "inconclusive");
  const std::string tenfold = compared(one + " " + folder.file("far") + gated, slower_status, "slower");
  CHECK_THAT(tenfold, ContainsSubstring("10.0000") && ContainsSubstring("the closest differ 10.0 times"));
  const json written = test::read(out);
  CHECK(written["comparisons"].size() == 4);
  for (const json& row : written["comparisons"]) {
    CHECK(row["key"]["network"] == "mnist_mlp");
    CHECK(row["low"] <= row["ratio"]);
    CHECK(row["ratio"] <= row["high"]);
    CHECK(row["first_processes"] == 12);
    CHECK(row["processes"] == 12);
  }

  std::filesystem::copy_file(after + "/3.json", after + "/30.json");
  CHECK_THAT(compared(both, 2, "the same process"), ContainsSubstring("3.json") && ContainsSubstring("30.json"));
  std::filesystem::remove(after + "/30.json");
  measured["context"]["commit"] = "another";
  process(after, 12, 1);
  CHECK_THAT(compared(both, 2, "12.json"), ContainsSubstring("another"));
  std::ofstream(after + "/12.json") << measured.dump().substr(0, 100);
  compared(both, 1, "12.json is damaged");
  std::filesystem::create_directories(folder.file("empty"));
  compared(before + " " + folder.file("empty"), 1);
}

TEST_CASE("variants that took turns in one file are compared, and the file keeps the comparison") {
  const Folder folder;
  const std::string path = folder.file("race.json");
  const json key = {{"what", "net"}, {"network", "a"},   {"part", "total"}, {"backend", "eigen"},
                    {"type", "f32"}, {"layout", "nchw"}, {"batch", 16}};
  const auto row = [&](const char* variant, double factor) {
    json times = json::array();
    for (int i = 0; i < 8; ++i) times.push_back(factor * (1 + 1e-3 * i));
    return json{{"name", "net/a"}, {"key", key},          {"variant", variant},
                {"rerun", "run"},  {"real_times", times}, {"time_unit", "ms"}};
  };
  const json file = {
      {"context", {{"lamina_format", 2}, {"variants", {{{"variant", "eigen"}}, {{"variant", "torch"}}}}}},
      {"benchmarks", {row("eigen", 1), row("torch", 2)}},
      {"failures", {"kept"}}};
  write(path, file);
  const std::string paired = "--paired=" + path;
  CHECK_THAT(
      compared(paired + " --subject=eigen --fail-if-slower=3% --benchmark_out=" + path, 0, "eigen against torch"),
      ContainsSubstring("faster") && ContainsSubstring("torch ms") && ContainsSubstring("eigen ms") &&
          !ContainsSubstring("\n\n\n"));
  const json kept = test::read(path);
  CHECK(kept["benchmarks"] == file["benchmarks"]);
  CHECK(kept["failures"] == file["failures"]);
  REQUIRE(kept["comparisons"].size() == 1);
  const json& found = kept["comparisons"][0];
  CHECK(found["first"] == "torch");
  CHECK(found["second"] == "eigen");
  CHECK(found["verdict"] == "faster");
  CHECK(found["ratio"] == 0.5);
  CHECK(found["processes"] == 8);
  CHECK(found["rerun"] == "run");
  compared(paired + " --fail-if-slower=3%", slower_status, "net/a, torch against eigen: slower");
  compared(paired + " " + path, 2, "--paired takes one file in place of A and B");
  compared(path, 2, "compare needs A and B; or --paired=FILE");
  compared("--subject=eigen " + path + " " + path, 2);
  compared("", 2);
  refuse(folder, file, "--paired=",
         {{"uneven.json", "/benchmarks/0/cpu_times", {1.0}, 1, "not as many cpu_times or rounds"},
          {"twice.json", "/benchmarks/2", row("eigen", 1), 1, "net/a has round 0 twice"},
          {"rounds.json", "/benchmarks/0/rounds", {0, 1}, 1, "not as many cpu_times or rounds"},
          {"keras.json", "/benchmarks/0/variant", "keras", 1, "lacks the variant keras"},
          {"one.json", "/context/variants/1", nullptr, 1, "has 1 variants"},
          {"none.json", "/context/variants", nullptr, 1, "has 0 variants"}});
}
