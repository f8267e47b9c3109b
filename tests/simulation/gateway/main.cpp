// Runs the gateway's decisions through schedules made from seeds. Reports a broken promise and its
// seed.
//
//   leasehold-gateway-simulation [--schedules N] [--threads T]
//
// SEED=n runs only that schedule, with a trace.
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/simulation/gateway/world.hpp"

namespace leasehold::gateway::simulation {
namespace {

/// A failed assertion of the decisions ends in abort(); the seed must be printed all the same.
void print_seed(int) {
  char line[64];
  const auto end = fmt::format_to_n(line, sizeof line, "aborted\nrun again with SEED={}\n",
                                    running_schedule.seed);
  (void)!::write(STDOUT_FILENO, line, std::min(end.size, sizeof line));
  ::_exit(1);
}

void run_schedule(std::uint64_t seed, Coverage& coverage) {
  running_schedule.seed = seed;
  World(seed, coverage).run();
}

void add(const Coverage& from, Coverage& to) {
  to.finished += from.finished;
  to.failed += from.failed;
  to.asked_again += from.asked_again;
  to.left_list += from.left_list;
  to.gone_bytes += from.gone_bytes;
  for (const auto& [cause, count] : from.opened) to.opened[cause] += count;
}

Coverage run_all(std::uint64_t schedules, unsigned threads) {
  std::atomic<std::uint64_t> next{1};
  std::vector<Coverage> seen(threads);
  std::vector<std::jthread> running;
  for (unsigned i = 0; i < threads; ++i) {
    running.emplace_back([&, i] {
      for (std::uint64_t seed; (seed = next++) <= schedules;) run_schedule(seed, seen[i]);
    });
  }
  running.clear();
  for (unsigned i = 1; i < threads; ++i) add(seen[i], seen[0]);
  return std::move(seen[0]);
}

/// Every kind of move must have occurred; a simulation that moves no text finds no bug.
int report(const Coverage& coverage) {
  int missing = 0;
  for (int i = 0; i < kMoveCauseCount; ++i) {
    const auto cause = static_cast<MoveCause>(i);
    const auto found = coverage.opened.find(cause);
    const std::uint64_t count = found == coverage.opened.end() ? 0 : found->second;
    std::printf("%12llu hosts asked, cause %s\n", static_cast<unsigned long long>(count),
                std::string(name(cause)).c_str());
    missing += count == 0;
  }
  std::printf("%12llu successors asked again\n",
              static_cast<unsigned long long>(coverage.asked_again));
  std::printf("%12llu successors of hosts that left the list\n",
              static_cast<unsigned long long>(coverage.left_list));
  std::printf("%12llu pieces of hosts that had left their cell\n",
              static_cast<unsigned long long>(coverage.gone_bytes));
  missing += (coverage.left_list == 0) + (coverage.gone_bytes == 0);
  std::printf("%12llu texts finished, %llu ended early, no promise broken\n",
              static_cast<unsigned long long>(coverage.finished),
              static_cast<unsigned long long>(coverage.failed));
  if (missing > 0) std::printf("%d causes did not occur; run more schedules\n", missing);
  return missing > 0 ? 1 : 0;
}

int run(std::uint64_t schedules, unsigned threads) {
  std::signal(SIGABRT, print_seed);
  if (const char* seed = std::getenv("SEED")) {
    running_schedule.is_traced = true;
    Coverage ignored;
    run_schedule(std::strtoull(seed, nullptr, 10), ignored);
    std::printf("seed %s: no promise broken\n", seed);
    return 0;
  }
  return report(run_all(schedules, threads));
}

}  // namespace
}  // namespace leasehold::gateway::simulation

int main(int argc, char** argv) {
  std::uint64_t schedules = 20'000;
  unsigned threads = 1;
  CLI::App app("Simulates the gateway's decisions under seeded faults");
  app.add_option("--schedules", schedules, "Number of schedules; their seeds are 1 to N");
  app.add_option("--threads", threads, "Number of schedules that run in parallel");
  CLI11_PARSE(app, argc, argv);
  return leasehold::gateway::simulation::run(schedules, threads);
}
