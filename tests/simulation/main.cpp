// Runs the lease protocol through schedules made from seeds. Reports a broken promise and its seed.
//
//   leasehold-simulation [--schedules N] [--threads T] [--coverage LEAST]
//                        [--planted-bug NAME] [--memory machine|card]
//
// Every third schedule lends memory of a card, the others memory of the machine; --memory makes all
// alike. SEED=n runs only that schedule, with a trace. --coverage fails when a transition met a
// fault that can meet it fewer than LEAST times. --planted-bug enables a bug, and succeeds when the
// judge finds it.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <unistd.h>
#include <CLI/CLI.hpp>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <thread>

#include "tests/simulation/world.hpp"

namespace leasehold::simulation {
namespace {

/// A failed assertion of the core ends in abort(); the seed must be printed all the same.
void print_seed(int) {
  char line[128];
  const auto end =
      fmt::format_to_n(line, sizeof(line), "the core aborted\nrun again with SEED={}{}\n",
                       running_schedule.seed, running_options);
  (void)!::write(STDOUT_FILENO, line, std::min(end.size, sizeof(line)));
  ::_exit(expect_violation ? 0 : 1);
}

struct Options {
  std::uint64_t schedules = 20'000;
  unsigned threads = 1;
  std::uint64_t coverage = 0;
  std::string planted_bug;
  PlantedBugs planted_bugs;
  MemoryKind memory = MemoryKind::Either;
};

bool enable_planted_bug(Options& options) {
  const std::map<std::string, bool PlantedBugs::*> all{
      {"eof-as-proof", &PlantedBugs::eof_as_proof},
      {"ack-before-drain", &PlantedBugs::ack_before_drain},
      {"unmap-before-quiet", &PlantedBugs::unmap_before_quiet},
      {"commit-without-reread", &PlantedBugs::commit_without_reread},
      {"commit-without-clock", &PlantedBugs::commit_without_clock},
      {"position-repeated", &PlantedBugs::position_repeated},
      {"torn-record-read", &PlantedBugs::torn_record_read},
      {"weights-not-reopened", &PlantedBugs::weights_not_reopened},
      {"reader-not-gated", &PlantedBugs::reader_not_gated},
      {"adapter-for-another", &PlantedBugs::adapter_for_another},
      {"adapter-unfilled-kept", &PlantedBugs::adapter_unfilled_kept},
      {"adapter-closed-while-read", &PlantedBugs::adapter_closed_while_read},
      {"adapter-digest-ignored", &PlantedBugs::adapter_digest_ignored},
      {"adapter-bytes-ignored", &PlantedBugs::adapter_bytes_ignored},
      {"adapter-not-scrubbed", &PlantedBugs::adapter_not_scrubbed},
      {"adapter-not-gated", &PlantedBugs::adapter_not_gated},
      {"adapter-version-ignored", &PlantedBugs::adapter_version_ignored},
      {"adapter-text-for-any", &PlantedBugs::adapter_text_for_any},
      {"adapter-text-kept", &PlantedBugs::adapter_text_kept},
      {"journal-over-table", &PlantedBugs::journal_over_table},
      {"settle-immediately", &PlantedBugs::settle_immediately},
      {"mirror-not-awaited", &PlantedBugs::mirror_not_awaited},
      {"agent-does-not-clear", &PlantedBugs::agent_does_not_clear},
      {"agent-fakes-free-bytes", &PlantedBugs::agent_fakes_free_bytes},
      {"erasure-unrecorded", &PlantedBugs::erasure_unrecorded}};
  if (options.planted_bug.empty()) return true;
  const auto found = all.find(options.planted_bug);
  if (found == all.end()) return false;
  options.planted_bugs.*found->second = true;
  expect_violation = true;
  return true;
}

Coverage run_all(const Options& options) {
  std::atomic<std::uint64_t> next{1};
  std::vector<Coverage> seen(options.threads);
  std::vector<std::jthread> threads;
  for (unsigned i = 0; i < options.threads; ++i) {
    threads.emplace_back([&, i] {
      for (std::uint64_t seed; (seed = next++) <= options.schedules;) {
        World(seed, options.planted_bugs, seen[i], options.memory).run();
      }
    });
  }
  threads.clear();
  for (unsigned i = 1; i < options.threads; ++i) seen[0].add(seen[i]);
  return std::move(seen[0]);
}

int report(const Options& options, const Coverage& coverage) {
  std::printf("%s", coverage.table().c_str());
  std::vector<std::string> wrong = coverage.wrongly_impossible();
  if (options.coverage != 0) {
    for (std::string& line : coverage.shortfalls(options.coverage))
      wrong.push_back(std::move(line));
  }
  for (const std::string& line : wrong) std::printf("coverage: %s\n", line.c_str());
  std::printf("%llu schedules, no promise broken, %zu faults of coverage\n",
              static_cast<unsigned long long>(options.schedules), wrong.size());
  return wrong.empty() ? 0 : 1;
}

int run(Options options) {
  std::signal(SIGABRT, print_seed);
  spdlog::set_level(spdlog::level::off);  // errors within a schedule are expected
  if (const char* seed = std::getenv("SEED")) {
    Coverage ignored;
    tracing = true;
    World(std::strtoull(seed, nullptr, 10), options.planted_bugs, ignored, options.memory).run();
    std::printf("seed %s: no promise broken\n", seed);
    return 0;
  }
  const Coverage coverage = run_all(options);
  if (!options.planted_bug.empty()) {
    std::printf("planted bug %s was not found in %llu schedules\n", options.planted_bug.c_str(),
                static_cast<unsigned long long>(options.schedules));
    return 1;
  }
  return report(options, coverage);
}

}  // namespace
}  // namespace leasehold::simulation

int main(int argc, char** argv) {
  leasehold::simulation::Options options;
  CLI::App app("Simulates the lease protocol under a seeded scheduler");
  app.add_option("--schedules", options.schedules, "Number of schedules; their seeds are 1 to N");
  app.add_option("--threads", options.threads, "Number of schedules that run in parallel");
  app.add_option("--coverage", options.coverage,
                 "Least number of meetings of every transition with every fault");
  app.add_option("--planted-bug", options.planted_bug, "Bug to enable; the judge must find it");
  app.add_option("--memory", options.memory, "Memory to lend; chosen by the seed by default")
      ->transform(CLI::CheckedTransformer(std::map<std::string, leasehold::simulation::MemoryKind>{
          {"machine", leasehold::simulation::MemoryKind::Machine},
          {"card", leasehold::simulation::MemoryKind::Card}}));
  CLI11_PARSE(app, argc, argv);
  if (options.coverage != 0 && options.memory != leasehold::simulation::MemoryKind::Either) {
    std::fprintf(stderr,
                 "--coverage needs schedules of both kinds of memory; leave out --memory\n");
    return 2;
  }
  for (const char* name : {"--planted-bug", "--memory"}) {
    if (const auto* option = app.get_option(name); option->count() > 0)
      leasehold::simulation::running_options +=
          std::string(" ") + name + " " + option->as<std::string>();
  }
  if (!leasehold::simulation::enable_planted_bug(options)) {
    std::fprintf(stderr, "there is no planted bug %s; see the list in tests/simulation/main.cpp\n",
                 options.planted_bug.c_str());
    return 2;
  }
  return leasehold::simulation::run(std::move(options));
}
