// The subcommand `compare`: files that cannot be compared, folders of processes, variants, and its gate.

#include "bench/compare/compare.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ended.h"
#include "lamina/error.h"
#include "tests/support/catch.h"

using namespace lamina;
using namespace lamina::bench;
using Catch::Matchers::ContainsSubstring;
using lamina::test::Folder;
using nlohmann::json;

TEST_CASE("files without a common row, of another machine, of a newer format, damaged or foreign are refused by name") {
  const Folder folder;
  const auto write = [&](const char* name, const std::string& text) {
    std::ofstream(folder.file(name)) << text;
    return folder.file(name);
  };
  const json row = {{"name", "net/a"},  {"run_type", "iteration"}, {"repetition_index", 0},
                    {"real_time", 1.0}, {"time_unit", "ms"},       {"key", {{"what", "net"}}}};
  const json good = {{"context", {{"lamina_format", 1}, {"processor", "X"}}}, {"benchmarks", {row}}};
  const std::string a = write("a.json", good.dump());
  const auto refused = [&](const std::string& other, int status, const std::string& why) {
    const test::Ended ended = test::run_bench("compare " + a + " " + other);
    CAPTURE(other, ended.said);
    CHECK(ended.status == status);
    CHECK_THAT(ended.said, ContainsSubstring(why));
  };
  refused(folder.file("none.json"), 1, "none.json");
  refused(write("damaged.json", good.dump().substr(0, 50)), 1, "damaged.json is damaged");
  refused(write("foreign.json", R"({"results": []})"), 1, "foreign.json holds no rows");
  refused(write("list.json", "[1, 2]"), 1, "list.json holds no rows");
  struct Damage {
    const char *name, *place;
    json value;
    int status;
    const char* why;
  };
  for (const Damage& one : std::vector<Damage>{
           {"newer.json", "/context/lamina_format", 3, 1, "newer.json has format 3"},
           {"unit.json", "/benchmarks/0/time_unit", "days", 1, "unit.json is damaged"},
           {"zero.json", "/benchmarks/0/real_time", 0.0, 1, "net/a has the time 0"},
           {"nan.json", "/benchmarks/0/real_time", nullptr, 1, "nan.json is damaged"},  // what NaN becomes
           {"twice.json", "/benchmarks/1", row, 1, "net/a has pass 0 twice"},
           {"race.json", "/context/variants", json::array(), 1, "race.json holds variants that took turns"},
           {"empty.json", "/benchmarks", json::array(), 1, "holds no row"},
           {"elsewhere.json", "/context/processor", "Y", 2, "processor: X and Y"},
           {"others.json", "/benchmarks/0/name", "net/b", 2, "no row in common"}}) {
    json other = good;
    other[json::json_pointer(one.place)] = one.value;
    refused(write(one.name, other.dump()), one.status, one.why);
  }
  json other = good;
  other["benchmarks"][0].erase("real_time");
  refused(write("untimed.json", other.dump()), 1, "real_time");
  other = good;
  other["benchmarks"][0].update({{"real_times", {1.0, 2.0}}, {"cpu_times", {1.0}}});
  refused(write("uneven.json", other.dump()), 1, "uneven.json is damaged");
  const std::string elsewhere = folder.file("elsewhere.json");
  CHECK(test::run_bench("compare " + a + " " + elsewhere + " --other_machine").status == 0);
  CHECK(test::run_bench("compare " + a + " " + a + " --fail-if-slower=3").status == 2);
  const test::Ended over = test::run_bench("compare " + a + " " + elsewhere + " --other_machine --benchmark_out=" + a);
  CHECK(over.status == 2);
  CHECK_THAT(over.said, ContainsSubstring("a.json is one of the files"));
  CHECK(test::read(a) == good);
}

TEST_CASE("a row's times are the same from an entry for each pass and from one entry with all of them") {
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
    std::ofstream(folder.file(name)) << json{{"context", {{"lamina_format", 1}}}, {"benchmarks", entries}};
    return read_run_file(folder.file(name)).rows;
  };
  json each = json::array(), together = json::array();
  for (const char* what : {"net", "setup"}) {
    for (int pass = 0; pass < 3; ++pass) each.push_back(entry(what, pass, 3.0 + pass, 5.0 + pass));
    together.push_back(entry(what, 0, 4, 6));
    together.back().update({{"real_times", {3.0, 4.0, 5.0}}, {"cpu_times", {5.0, 6.0, 7.0}}});
  }
  const auto apart = rows_of("each.json", each), joined = rows_of("together.json", together);
  for (const char* name : {"net/a", "setup/a"}) {
    CAPTURE(name);
    CHECK(apart.at(name).seconds == joined.at(name).seconds);
    CHECK(apart.at(name).cpu_seconds == joined.at(name).cpu_seconds);
  }
  CHECK(joined.at("net/a").seconds == std::vector{1e-3 * 3.0, 1e-3 * 4.0, 1e-3 * 5.0});
  CHECK(joined.at("net/a").cpu_seconds == std::vector{1e-3 * 5.0, 1e-3 * 6.0, 1e-3 * 7.0});
  CHECK(joined.at("setup/a").seconds == std::vector{1e-3 * 3.0});
  CHECK(joined.at("setup/a").cpu_seconds == std::vector{1e-3 * 5.0});

  json empty = json::array({together[0]});
  empty[0]["real_times"] = json::array();
  CHECK_THROWS_WITH(rows_of("empty.json", empty), ContainsSubstring("net/a has no real_times"));
}

TEST_CASE("the program compares folders of files that it wrote, and its gate has its own status") {
  const Folder folder;
  const std::string one = folder.file("one.json"), before = folder.file("before"), after = folder.file("after"),
                    out = folder.file("compared.json");
  REQUIRE(
      test::run_bench("--backend=eigen --batch=2 --passes=9 --benchmark_filter=net/mnist_mlp/ --benchmark_out=" + one)
          .status == 0);
  const json measured = test::read(one);
  const auto write = [&](const std::string& side, const std::string& name, double factor) {
    std::filesystem::create_directories(side);
    json process = measured;
    for (json& entry : process["benchmarks"]) entry["real_time"] = factor * entry["real_time"].get<double>();
    std::ofstream(side + "/" + name) << process;
  };
  for (int i = 0; i < 12; ++i) {
    write(before, std::to_string(i) + ".json", 1 + 1e-3 * i);
    write(after, std::to_string(i) + ".json", 2 + 1e-3 * i);
  }
  write(after, "notes.txt", 1);  // no file of results
  const std::string gated = " --any_load --fail-if-slower=3%";
  const test::Ended gate = test::run_bench("compare " + before + " " + after + gated + " --benchmark_out=" + out);
  CAPTURE(gate.said);
  CHECK(gate.status == slower_status);
  CHECK(test::run_bench("compare " + before + " " + before + gated).status == 0);
  CHECK(test::run_bench("compare " + before + " " + after + " --any_load").status == 0);
  const test::Ended single = test::run_bench("compare " + one + " " + after + "/3.json" + gated);
  CHECK(single.status == 0);
  CHECK_THAT(single.said, ContainsSubstring("more needed"));
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
  const test::Ended twice = test::run_bench("compare " + before + " " + after);
  CHECK(twice.status == 2);
  CHECK_THAT(twice.said,
             ContainsSubstring("3.json") && ContainsSubstring("30.json") && ContainsSubstring("one process"));
  std::filesystem::remove(after + "/30.json");

  json other = measured;
  other["context"]["commit"] = "another";
  std::ofstream(after + "/12.json") << other;
  const test::Ended mixed = test::run_bench("compare " + before + " " + after);
  CHECK(mixed.status == 2);
  CHECK_THAT(mixed.said, ContainsSubstring("12.json") && ContainsSubstring("another"));
  std::ofstream(after + "/12.json") << measured.dump().substr(0, 100);
  const test::Ended damaged = test::run_bench("compare " + before + " " + after);
  CHECK(damaged.status == 1);
  CHECK_THAT(damaged.said, ContainsSubstring("12.json is damaged"));
  std::filesystem::create_directories(folder.file("empty"));
  CHECK(test::run_bench("compare " + before + " " + folder.file("empty")).status == 1);
}

TEST_CASE("variants that took turns in one file are compared, and the file keeps what was found") {
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
  json file = {{"context", {{"lamina_format", 2}, {"variants", {{{"variant", "eigen"}}, {{"variant", "torch"}}}}}},
               {"benchmarks", {row("eigen", 1), row("torch", 2)}},
               {"failures", {"kept"}}};
  std::ofstream(path) << file;
  const test::Ended race =
      test::run_bench("compare --paired=" + path + " --subject=eigen --benchmark_out=" + path + " --fail-if-slower=3%");
  CAPTURE(race.said);
  CHECK(race.status == 0);
  CHECK_THAT(race.said, ContainsSubstring("eigen against torch") && ContainsSubstring("faster"));
  CHECK_THAT(race.said, ContainsSubstring("torch ms") && ContainsSubstring("eigen ms"));
  CHECK_THAT(race.said, !ContainsSubstring("\n\n\n"));
  const json kept = test::read(path);
  CHECK(kept["benchmarks"] == file["benchmarks"]);
  CHECK(kept["failures"] == file["failures"]);
  REQUIRE(kept["comparisons"].size() == 1);
  const json& found = kept["comparisons"][0];
  CHECK(found["first"] == "torch");
  CHECK(found["second"] == "eigen");
  CHECK(found["verdict"] == "faster");
  CHECK(found["ratio"] == 0.5);
  CHECK(found["rounds"] == 8);
  CHECK(found["rerun"] == "run");
  const test::Ended gate = test::run_bench("compare --paired=" + path + " --fail-if-slower=3%");
  CHECK(gate.status == slower_status);
  CHECK_THAT(gate.said, ContainsSubstring("net/a, torch against eigen: slower"));
  const test::Ended both = test::run_bench("compare --paired=" + path + " " + path);
  CHECK(both.status == 2);
  CHECK_THAT(both.said, ContainsSubstring("--paired takes one file in place of A and B"));
  const test::Ended one = test::run_bench("compare " + path);
  CHECK(one.status == 2);
  CHECK_THAT(one.said, ContainsSubstring("compare needs two: BEFORE AFTER"));
  CHECK(test::run_bench("compare --subject=eigen " + path + " " + path).status == 2);
  CHECK(test::run_bench("compare").status == 2);
  const auto refused = [&](const json& damaged, const char* why) {
    std::ofstream(path) << damaged;
    const test::Ended ended = test::run_bench("compare --paired=" + path);
    CHECK(ended.status == 1);
    CHECK_THAT(ended.said, ContainsSubstring(why));
  };
  json other = file;
  other["benchmarks"].push_back(row("eigen", 1));
  refused(other, "net/a has round 0 twice");
  other = file;
  other["benchmarks"][0]["rounds"] = {0, 1};
  refused(other, "not as many cpu_times or rounds");
  other = file;
  other["benchmarks"][0]["variant"] = "keras";
  refused(other, "lacks the variant keras");
  other = file;
  other["context"]["variants"].erase(1);
  refused(other, "has 1 variants");
  other["context"].erase("variants");
  other["benchmarks"][0].erase("variant");
  refused(other, "has 0 variants");
}
