// Runs the decisions of a cell through schedules made from seeds. Reports a broken promise and its
// seed.
//
//   leasehold-cell-simulation [--schedules N] [--threads T] [--planted-bug NAME]
//
// With a planted bug the program succeeds when the judge finds it. SEED=n runs only that schedule,
// with a trace.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <thread>

#include "tests/simulation/cell/world.hpp"

namespace leasehold::cell::simulation {
namespace {

struct Found {
  std::uint64_t seed = 0;
  std::string what;
};

/// A failed assertion of the decisions ends in abort(); the seed must be printed all the same.
void print_seed(int) {
  char line[64];
  const auto end = fmt::format_to_n(line, sizeof line, "aborted\nrun again with SEED={}\n",
                                    running_schedule.seed);
  (void)!::write(STDOUT_FILENO, line, std::min(end.size, sizeof line));
  ::_exit(1);
}

std::optional<Found> run_schedule(std::uint64_t seed, PlantedBug bug, Coverage& coverage) {
  running_schedule.seed = seed;
  try {
    World(seed, bug, coverage).run();
  } catch (const Violation& violation) {
    return Found{seed, violation.what};
  }
  return std::nullopt;
}

struct Schedules {
  std::uint64_t count = 2'000;
  unsigned threads = 1;
  PlantedBug bug = PlantedBug::None;
};

/// Stops at the first violation.
std::optional<Found> run_all(const Schedules& schedules, Coverage& all) {
  std::atomic<std::uint64_t> next{1};
  std::mutex mutex;
  std::optional<Found> first;
  std::vector<std::jthread> running;
  for (unsigned i = 0; i < schedules.threads; ++i) {
    running.emplace_back([&] {
      Coverage coverage;
      for (std::uint64_t seed; (seed = next++) <= schedules.count;) {
        const auto found = run_schedule(seed, schedules.bug, coverage);
        if (!found) continue;
        next = schedules.count + 1;
        const std::scoped_lock lock(mutex);
        if (!first || found->seed < first->seed) first = found;
      }
      const std::scoped_lock lock(mutex);
      for (const auto& [counted, times] : coverage) all[counted] += times;
    });
  }
  running.clear();
  return first;
}

/// Everything that schedules are for must have occurred, or they find no bug.
int report(const Coverage& coverage) {
  int missing = 0;
  for (int i = 0; i < kCountedCount; ++i) {
    const auto found = coverage.find(static_cast<Counted>(i));
    const std::uint64_t times = found == coverage.end() ? 0 : found->second;
    std::printf("%12llu %s\n", static_cast<unsigned long long>(times),
                std::string(name(static_cast<Counted>(i))).c_str());
    missing += times == 0;
  }
  if (missing > 0)
    std::printf("%d kinds did not occur; run more schedules\n", missing);
  else
    std::printf("no promise broken\n");
  return missing > 0 ? 1 : 0;
}

int run(const Schedules& schedules) {
  std::signal(SIGABRT, print_seed);
  Coverage coverage;
  if (const char* seed = std::getenv("SEED")) {
    running_schedule.is_traced = true;
    const auto found = run_schedule(std::strtoull(seed, nullptr, 10), schedules.bug, coverage);
    std::printf("seed %s: %s\n", seed, found ? found->what.c_str() : "no promise broken");
    return found ? 1 : 0;
  }
  const auto found = run_all(schedules, coverage);
  if (schedules.bug == PlantedBug::None && !found) return report(coverage);
  if (!found) {
    std::printf("the planted bug was not found in %llu schedules\n",
                static_cast<unsigned long long>(schedules.count));
    return 1;
  }
  std::printf("%s\nrun again with SEED=%llu\n", found->what.c_str(),
              static_cast<unsigned long long>(found->seed));
  return schedules.bug == PlantedBug::None ? 1 : 0;
}

}  // namespace
}  // namespace leasehold::cell::simulation

int main(int argc, char** argv) {
  using namespace leasehold::cell::simulation;
  Schedules schedules;
  std::string bug = "none";
  CLI::App app("Simulates the decisions of a cell under seeded faults");
  app.add_option("--schedules", schedules.count, "Number of schedules; their seeds are 1 to N");
  app.add_option("--threads", schedules.threads, "Number of schedules that run in parallel");
  std::vector<std::string> names;
  for (const NamedBug& each : kPlantedBugs) names.emplace_back(each.name);
  app.add_option("--planted-bug", bug, "Plant this bug, which the judge must find")
      ->check(CLI::IsMember(names));
  CLI11_PARSE(app, argc, argv);
  schedules.bug = *planted_bug_from_name(bug);
  return run(schedules);
}
