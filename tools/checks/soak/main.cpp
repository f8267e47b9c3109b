/// leasehold-soak: kills and stops processes and revokes leases at random for a long time, then
/// checks the histories that they wrote.
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "common/temporary_directory.hpp"
#include "common/version.hpp"
#include "tools/checks/soak/report.hpp"
#include "tools/checks/soak/round.hpp"
#include "tools/cli/report_directory.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::soak;

constexpr int kChecksFailed = 1;
constexpr int kInterrupted = 130;  // as a shell reports SIGINT

namespace fs = std::filesystem;

/// The seed of each round is one more than that of the round before, so `--seed S --kills N` with N
/// kills per round repeats a failed round.
Result<void> run_rounds(const Settings& settings, const demo::Poller& poller,
                        const fs::path& directory, Summary& summary) {
  Workload workload = TRY(make_workload(settings));
  fs::create_directory(directory / "calm");
  TRY(run_undisturbed(settings, workload, poller, directory / "calm"));
  const SystemClock clock;
  const TimePoint until = clock.now() + std::chrono::minutes(settings.max_minutes);
  for (std::uint64_t round = 0; summary.kills() < settings.kills && clock.now() < until; ++round) {
    const auto left = static_cast<std::uint32_t>(settings.kills - summary.kills());
    const RoundPlan plan{.seed = settings.seed + round,
                         .kills = std::min(left, settings.kills_per_round),
                         .until = until,
                         .directory = directory / std::to_string(settings.seed + round)};
    fs::create_directory(plan.directory);
    const RoundResult result = TRY(run_round(settings, workload, poller, plan));
    std::cout << round_text(plan.seed, result) << std::endl;
    summary.add(result);
    if (demo::all_ok(result.checks)) fs::remove_all(plan.directory);
  }
  return {};
}

/// True when every check passed. If one failed, the histories stay on disk.
Result<bool> run(const Settings& settings, const demo::Poller& poller) {
  const auto reports = TRY(cli::ReportDirectory::open(settings.out_dir, "soak", {"json", "txt"}));
  auto directory = TRY(TemporaryDirectory::create("soak"));
  std::cout << "seed " << settings.seed << std::endl;
  Summary summary(settings.seed);
  const auto done = run_rounds(settings, poller, directory.path(), summary);
  if (!done || !summary.all_passed()) {
    directory.keep();
    std::cerr << "Histories and logs: " << directory.path().string() << '\n';
  }
  std::cout << '\n' << summary.text();
  TRY(reports.write("json", summary.json().dump(2) + "\n"));
  TRY(reports.write("txt", summary.text()));
  TRY(done);
  std::cout << (summary.all_passed() ? "\nAll checks passed.\n" : "\nSome checks FAILED.\n");
  return summary.all_passed();
}

void describe(CLI::App& app, Settings& settings) {
  app.set_version_flag("--version", "leasehold-soak " + std::string(version()));
  app.add_option("--bin-dir", settings.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", settings.model_path, "GGUF model")->required();
  app.add_option("--seed", settings.seed, "Seed of the actions, their targets and their times")
      ->capture_default_str();
  app.add_option("--kills", settings.kills, "Stop after this many SIGKILLs")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  app.add_option("--max-minutes", settings.max_minutes, "Stop after this many minutes")
      ->check(CLI::Range(1u, 10'000u))
      ->capture_default_str();
  app.add_option("--kills-per-round", settings.kills_per_round,
                 "SIGKILLs in one round; its history is checked at its end")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--tenants", settings.tenants, "Number of tenants that run at a time")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--max-tokens", settings.max_tokens, "Length of each text in tokens")
      ->check(CLI::Range(10, 400))
      ->capture_default_str();
  app.add_flag("!--no-store", settings.store,
               "Run brokers without descriptor store and journal, so that each starts empty");
  app.add_option("--out", settings.out_dir, "Directory for soak.json and soak.txt");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Kill and stop processes and revoke leases at random, then check the histories",
               "leasehold-soak"};
  describe(app, settings);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const auto poller = demo::Poller::create();
  if (!poller) return print_error(app.get_name(), poller.error());
  const auto all_passed = run(settings, *poller);
  if (poller->interrupted()) return kInterrupted;
  if (!all_passed) return print_error(app.get_name(), all_passed.error());
  return finish_program(app.get_name(), *all_passed ? kExitOk : kChecksFailed);
}
