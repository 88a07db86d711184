// The thread pool: every part runs once, a range is always split in the same way, errors reach the caller.

#include "lib/backends/eigen/runtime/pool.h"
#include "lib/core/system/usable_threads.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <mutex>
#include <thread>

#include "lib/backends/eigen/runtime/cpu_affinity.h"
#include "tests/support/catch.h"

using lamina::eigen::ThreadPool;

TEST_CASE("every part runs exactly once, on its own thread") {
  const int threads = GENERATE(1, 2, 3, 8);
  ThreadPool pool(threads);
  REQUIRE(pool.threads() == threads);
  std::vector<int> runs(static_cast<std::size_t>(threads));
  std::set<std::thread::id> ids;
  std::mutex mutex;
  pool.run([&](int part) {
    ++runs[static_cast<std::size_t>(part)];
    const std::lock_guard lock(mutex);
    ids.insert(std::this_thread::get_id());
  });
  CHECK(runs == std::vector<int>(static_cast<std::size_t>(threads), 1));
  CHECK(ids.size() == static_cast<std::size_t>(threads));
}

TEST_CASE("part 0 runs on the caller's thread") {
  ThreadPool pool(3);
  std::thread::id first;
  pool.run([&](int part) {
    if (part == 0) first = std::this_thread::get_id();
  });
  CHECK(first == std::this_thread::get_id());
}

TEST_CASE("no part of many short rounds is lost, and each round sees the writes of the round before") {
  ThreadPool pool(4);
  std::vector<std::int64_t> value(4);
  for (int round = 0; round < 2000; ++round) {
    pool.run([&](int part) {
      const auto from = static_cast<std::size_t>((part + round) % 4);  // another thread's share each round
      ++value[from];
    });
  }
  CHECK(value == std::vector<std::int64_t>(4, 2000));
}

TEST_CASE("workers that fell asleep wake up") {
  ThreadPool pool(2);
  std::atomic<int> runs = 0;
  for (int round = 0; round < 5; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    pool.run([&](int) { ++runs; });
  }
  CHECK(runs == 10);
}

#if defined(__linux__)
namespace {

cpu_set_t mask_of(pthread_t thread) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  REQUIRE(pthread_getaffinity_np(thread, sizeof mask, &mask) == 0);
  return mask;
}

using lamina::eigen::CpuAffinity;

/// The result of the work. If the work does not end within two minutes, the test fails while the work runs on. So the
/// work may not refer to objects of its caller.
template <class Work>
auto answer_soon(const std::string& what, Work work) {
  std::packaged_task task(std::function<decltype(work())()>(std::move(work)));
  auto answer = task.get_future();
  std::thread(std::move(task)).detach();
  if (answer.wait_for(std::chrono::minutes(2)) != std::future_status::ready)
    FAIL(what << " has not ended within two minutes");
  return answer.get();
}

/// The affinity masks of the threads after CpuAffinity::bind() in a caller with `processors`. The threads then release
/// the masks.
std::vector<cpu_set_t> bound_masks(std::size_t threads, std::size_t processors = CpuAffinity::usable()) {
  return answer_soon("CpuAffinity::bind() of " + std::to_string(threads) + " workers", [threads, processors] {
    CpuAffinity affinity;
    affinity.start(threads, processors);
    std::atomic<bool> go = false;
    std::vector<std::thread> workers;
    for (std::size_t i = 0; i < threads; ++i) {
      workers.emplace_back([&, i] {
        while (!go) std::this_thread::yield();
        affinity.release(i);
      });
    }
    affinity.bind(workers);
    std::vector<cpu_set_t> masks;
    for (std::thread& worker : workers) masks.push_back(mask_of(worker.native_handle()));
    go = true;
    for (std::thread& worker : workers) worker.join();
    return masks;
  });
}

}  // namespace

TEST_CASE("workers are bound to separate processors if a pool uses all processors, and surplus workers are not bound") {
  const cpu_set_t before = mask_of(pthread_self());
  const auto processors = static_cast<std::size_t>(CPU_COUNT(&before));
  cpu_set_t here;
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  const auto single = [](const cpu_set_t& mask) {
    int cpu = 0;
    while (CPU_COUNT(&mask) == 1 && !CPU_ISSET(cpu, &mask)) ++cpu;
    return CPU_COUNT(&mask) == 1 ? cpu : -1;
  };
  const std::vector<cpu_set_t> masks = bound_masks(processors);
  std::set<int> taken;
  for (std::size_t i = 0; i + 1 < processors; ++i) {
    const int cpu = single(masks[i]);
    CHECK(cpu >= 0);
    CHECK(taken.insert(cpu).second);
  }
  CHECK(CPU_EQUAL(&masks.back(), &before));
  if (processors > 2)
    for (const cpu_set_t& mask : bound_masks(processors - 2)) CHECK(CPU_EQUAL(&mask, &before));
  REQUIRE(CpuAffinity::usable() == processors);
  REQUIRE(sched_setaffinity(0, sizeof here, &here) == 0);
  CHECK(CpuAffinity::usable() == 1);
  for (const cpu_set_t& mask : bound_masks(2)) CHECK(CPU_EQUAL(&mask, &here));
  REQUIRE(sched_setaffinity(0, sizeof before, &before) == 0);
}

TEST_CASE("the processors that are usable when workers start decide whether the workers are bound") {
  const cpu_set_t before = mask_of(pthread_self());
  const auto processors = static_cast<std::size_t>(CPU_COUNT(&before));
  if (processors == 1) return;  // there are no separate processors
  for (const cpu_set_t& mask : bound_masks(1, 3)) CHECK(CPU_EQUAL(&mask, &before));
  for (const cpu_set_t& mask : bound_masks(1, 2)) CHECK(CPU_COUNT(&mask) == 1);
}

TEST_CASE("workers start on separate processors after a sleep, but may leave these processors") {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  REQUIRE(sched_getaffinity(0, sizeof allowed, &allowed) == 0);
  constexpr int rounds = 10;
  ThreadPool pool(2);
  int apart = 0;
  for (int round = 0; round < rounds; ++round) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    int cpu[2];
    cpu_set_t mask[2];
    pool.run([&](int part) {
      cpu[part] = sched_getcpu();
      CPU_ZERO(&mask[part]);
      (void)sched_getaffinity(0, sizeof mask[part], &mask[part]);
    });
    if (cpu[0] != cpu[1]) ++apart;
    for (const cpu_set_t& of_part : mask) CHECK(CPU_EQUAL(&of_part, &allowed));
  }
  if (CPU_COUNT(&allowed) > 1) CHECK(apart > rounds / 2);  // on a busy machine the caller may move to another processor
}
#endif

TEST_CASE("a caller that finishes early waits for slow workers") {
  ThreadPool pool(2);
  bool done = false;
  pool.run([&](int part) {
    if (part == 0) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    done = true;
  });
  CHECK(done);
}

TEST_CASE("an exception of any part is rethrown after all parts have ended, and the pool still works") {
  ThreadPool pool(3);
  for (const int failing : {0, 1, 2}) {
    std::atomic<int> ended = 0;
    CHECK_THROWS_AS(pool.run([&](int part) {
      ++ended;
      if (part == failing) throw std::domain_error("part");
    }),
                    std::domain_error);
    CHECK(ended == 3);
  }
  std::atomic<int> runs = 0;
  pool.run([&](int) { ++runs; });
  CHECK(runs == 3);
}

TEST_CASE("if several parts throw, the exception of the lowest part is rethrown") {
  ThreadPool pool(3);
  for (int round = 0; round < 20; ++round) {
    try {
      pool.run([](int part) {
        if (part > 0) throw part;
      });
      FAIL("nothing was thrown");
    } catch (const int part) {
      CHECK(part == 1);
    }
  }
}

TEST_CASE("split cuts a range into contiguous shares that are multiples of the grain and cover each element once") {
  const int threads = GENERATE(1, 2, 3, 7);
  const std::int64_t count = GENERATE(0, 1, 5, 16, 17, 100, 1003);
  const std::int64_t grain = GENERATE(1, 4, 16);
  ThreadPool pool(threads);
  std::vector<std::pair<std::int64_t, std::int64_t>> shares;
  std::mutex mutex;
  pool.split(count, grain, [&](std::int64_t first, std::int64_t last) {
    const std::lock_guard lock(mutex);
    shares.emplace_back(first, last);
  });
  std::sort(shares.begin(), shares.end());
  CHECK(shares.size() <= static_cast<std::size_t>(threads));
  std::int64_t at = 0;
  for (const auto& [first, last] : shares) {
    CHECK(first == at);
    CHECK(last > first);
    CHECK(first % grain == 0);
    CHECK((last % grain == 0 || last == count));
    at = last;
  }
  CHECK(at == count);
}

TEST_CASE("a pool splits the same range always in the same way") {
  ThreadPool pool(3);
  const auto shares = [&] {
    std::vector<std::int64_t> owner(100, -1);
    pool.split(100, 8, [&](std::int64_t first, std::int64_t last) {
      std::fill(owner.begin() + first, owner.begin() + last, first);
    });
    return owner;
  };
  const auto once = shares();
  for (int round = 0; round < 10; ++round) CHECK(shares() == once);
}

TEST_CASE("a second caller at the same time is refused, and the first caller is unaffected") {
  ThreadPool pool(2);
  std::atomic<int> refused = 0;
  std::vector<int> runs(2);
  pool.run([&](int part) {
    ++runs[static_cast<std::size_t>(part)];
    if (part != 0) return;
    std::thread([&] {
      try {
        pool.run([&](int) { FAIL("the second caller's work ran"); });
      } catch (const lamina::UsageError& error) {
        if (std::string(error.what()).find("two callers at once") != std::string::npos) ++refused;
      }
    }).join();
  });
  CHECK(refused == 1);
  CHECK(runs == std::vector<int>{1, 1});
  pool.run([&](int part) { ++runs[static_cast<std::size_t>(part)]; });
  CHECK(runs == std::vector<int>{2, 2});
}

TEST_CASE("work inside a pool cannot use the same pool, with one thread or more") {
  for (const int threads : {1, 2}) {
    ThreadPool pool(threads);
    CHECK_THROWS_AS(pool.run([&](int part) {
      if (part == 0) pool.run([](int) {});
    }),
                    lamina::UsageError);
    std::atomic<int> runs = 0;
    pool.run([&](int) { ++runs; });
    CHECK(runs == threads);
  }
}

TEST_CASE("quotas of processor time are rounded up to whole threads, and the smallest enclosing quota counts") {
  namespace fs = std::filesystem;
  const fs::path groups = fs::temp_directory_path() / ("lamina_groups_" + std::to_string(::getpid()));
  const auto write = [](const fs::path& file, const std::string& text) {
    fs::create_directories(file.parent_path());
    std::ofstream(file) << text;
  };
  const auto threads = [&] { return lamina::quota_threads(groups, groups / "own"); };
  CHECK(threads() == 0);  // no quota can be read
  write(groups / "own", "1:name=systemd:/elsewhere\n0::/outer/inner\n");
  CHECK(threads() == 0);
  const fs::path inner = groups / "outer" / "inner" / "cpu.max", outer = groups / "outer" / "cpu.max";
  write(inner, "max 100000\n");
  CHECK(threads() == 0);
  write(inner, "300000 100000\n");
  CHECK(threads() == 3);
  write(inner, "250000 100000\n");
  CHECK(threads() == 3);
  write(inner, "1000 100000\n");
  CHECK(threads() == 1);
  write(inner, "800000 100000\n");
  write(outer, "150000 50000\n");
  CHECK(threads() == 3);
  write(groups / "cpu.max", "200000 100000\n");  // the quota of a container
  CHECK(threads() == 2);
  for (const char* nonsense : {"", "max", "-1 100000", "100000 0", "1e30 1 1", "many few"}) {
    write(groups / "cpu.max", nonsense);
    CHECK(threads() == 3);  // the next smallest quota
  }
  fs::remove_all(groups);
}

TEST_CASE("a pool takes the cores of the process by default and refuses absurd numbers") {
  CHECK(ThreadPool(0).threads() >= 1);
  CHECK_THROWS_AS(ThreadPool(-1), lamina::UsageError);
  CHECK_THROWS_AS(ThreadPool(1 << 20), lamina::UsageError);
}
