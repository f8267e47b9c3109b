/// leasehold-soak: kills and stops processes and revokes leases at random for a long time, then
/// checks the histories that they wrote. With --hostile it attacks instead, and checks and measures
/// the effect on honest tenants. With --models it serves two models, and changes and damages their
/// files. With --adapters it serves 40 customers under an adapter each.
///
/// Exit codes: 0 all checks passed, 1 one failed, 2 wrong usage, 3 only a limit of --check is
/// exceeded, 130 interrupted, otherwise the code of the error (common/errc.hpp).
#include <CLI/CLI.hpp>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "common/cli/command_line.hpp"
#include "common/cli/number_option.hpp"
#include "common/cli/version.hpp"
#include "common/machine/text_file.hpp"
#include "tests/checks/attack/attacks.hpp"
#include "tests/checks/bench/limits.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/report/report_directory.hpp"
#include "tests/checks/runner/program.hpp"
#include "tests/checks/soak/adapters/adapters_run.hpp"
#include "tests/checks/soak/counters.hpp"
#include "tests/checks/soak/hostile/report.hpp"
#include "tests/checks/soak/hostile/run.hpp"
#include "tests/checks/soak/models/models_run.hpp"
#include "tests/checks/soak/round.hpp"
#include "tests/checks/soak/soak_system.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::soak;
using runner::kChecksFailed;
using runner::Poller;

constexpr int kOverLimit = 3;
constexpr std::size_t kMaxLimitsBytes = 1 << 20;
constexpr std::uint32_t kHostileSlowMotion_us = 10;

namespace fs = std::filesystem;

struct Options {
  HostileSettings settings;
  bool is_hostile = false;
  bool has_models = false;
  bool has_adapters = false;
  std::optional<std::uint32_t> seconds, max_tokens;
  std::string limits_path;
};

/// The seed grows by one with each round, so `--seed S --kills N` with N kills per round repeats a
/// failed round.
Result<void> run_rounds(const Settings& settings, const Poller& poller, const fs::path& directory,
                        Summary& summary) {
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
    if (runner::all_ok(result.checks)) fs::remove_all(plan.directory);
  }
  return {};
}

Result<int> run_kills(const Settings& settings, const Poller& poller) {
  const auto reports = TRY(ReportDirectory::open(settings.out_dir, "soak", {"json", "txt"}));
  std::cout << "seed " << settings.seed << std::endl;
  Summary summary(settings.seed, settings.least_disturbed_texts);
  return runner::run_in_directory(
      "soak", "Histories and logs", poller, [&](const fs::path& directory) -> Result<int> {
        const auto done = run_rounds(settings, poller, directory, summary);
        std::cout << '\n' << summary.text();
        TRY(reports.write("json", summary.json().dump(2) + "\n"));
        TRY(reports.write("txt", summary.text()));
        TRY(done);
        std::cout << runner::verdict(summary.all_passed());
        return summary.all_passed() ? kExitOk : kChecksFailed;
      });
}

Result<std::vector<bench::Limit>> read_limits(const std::string& path) {
  if (path.empty()) return std::vector<bench::Limit>{};
  return bench::parse_limits(TRY(read_text_file(path, kMaxLimitsBytes)));
}

Result<int> run_attacks(const Options& options, const Poller& poller) {
  const HostileSettings& settings = options.settings;
  const auto limits = TRY(read_limits(options.limits_path));
  const auto reports = TRY(ReportDirectory::open(settings.out_dir, "hostile", {"json", "txt"}));
  const double units = TRY(bench::measure_step(settings.model_path, bench::kDecodeSteps)).units;
  return runner::run_in_directory(
      "hostile", "Logs", poller, [&](const fs::path& directory) -> Result<int> {
        const nlohmann::json report =
            hostile_json(TRY(run_hostile(settings, poller, directory)), units);
        const auto checks = bench::check_limits(report, limits);
        const std::string text =
            hostile_text(report) + (checks.empty() ? "" : "\n" + bench::limit_checks_text(checks));
        std::cout << text;
        TRY(reports.write("json", report.dump(2) + "\n"));
        TRY(reports.write("txt", text));
        const bool within = std::ranges::all_of(checks, &bench::LimitCheck::ok);
        const int code = !report.at("ok").get<bool>() ? kChecksFailed
                         : within                     ? kExitOk
                                                      : kOverLimit;
        std::cout << runner::verdict(code == kExitOk);
        return code;
      });
}

Result<int> run_two_models(const Settings& settings, const Poller& poller) {
  std::cout << "seed " << settings.seed << std::endl;
  return runner::run_in_directory(
      "models", "Files and logs", poller, [&](const fs::path& directory) -> Result<int> {
        const runner::Record record = TRY(run_models(settings, poller, directory));
        const auto checks = judge_models(record);
        const bool all_passed = runner::all_ok(checks);
        std::cout << models_text(record, checks) << runner::verdict(all_passed);
        return all_passed ? kExitOk : kChecksFailed;
      });
}

Result<int> run_customers(const Settings& settings, const Poller& poller) {
  std::cout << "seed " << settings.seed << std::endl;
  return runner::run_in_directory(
      "adapters", "Histories and logs", poller, [&](const fs::path& directory) -> Result<int> {
        bool all_passed = true;
        TRY(run_adapters(settings, poller, directory, [&](const runner::Record& record) {
          const auto checks = judge_adapters(record);
          all_passed = all_passed && runner::all_ok(checks);
          std::cout << adapters_text(record, checks) << std::endl;
          return runner::all_ok(checks);
        }));
        std::cout << runner::verdict(all_passed);
        return all_passed ? kExitOk : kChecksFailed;
      });
}

void describe(CLI::App& app, Options& options) {
  Settings& settings = options.settings;
  app.set_version_flag("--version", "leasehold-soak " + std::string(version()));
  app.add_option("--bin-dir", settings.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", settings.model_path, "GGUF model")->required();
  app.add_option("--seed", settings.seed, "Seed of the actions, their targets and their times")
      ->capture_default_str();
  add_number_option(
      app, "--kills", settings.kills,
      "Stop after this many SIGKILLs; a run that --max-minutes ends earlier passes as well", 1u,
      1'000'000u);
  add_number_option(app, "--max-minutes", settings.max_minutes, "Stop after this many minutes", 1u,
                    10'000u);
  app.add_option("--disturbed-texts", settings.least_disturbed_texts,
                 "Least number of disturbed texts that must come whole")
      ->capture_default_str();
  add_number_option(app, "--kills-per-round", settings.kills_per_round,
                    "SIGKILLs in one round; its history is checked at its end", 1, 1000);
  add_number_option(app, "--tenants", settings.tenants, "Number of tenants that run at a time", 1,
                    32);
  app.add_option(
         "--max-tokens", options.max_tokens,
         "Length of each text in tokens; default: 120, with --hostile 400, with --models or "
         "--adapters 80")
      ->check(CLI::Range(10, 400));
  app.add_flag("!--no-store", settings.store,
               "Run brokers without descriptor store and journal, so that each starts empty");
  app.add_option("--out", settings.out_dir, "Directory for the report as JSON and text");
}

void describe_hostile(CLI::App& app, Options& options) {
  HostileSettings& hostile = options.settings;
  app.add_flag("--hostile", options.is_hostile,
               "Attack with hostile tenants and users without a lease, and kill nothing");
  app.add_option("--seconds", options.seconds,
                 "With --hostile, --models or --adapters: how long to attack or disturb; default: "
                 "60, with the others 120")
      ->check(CLI::Range(1u, 100'000u));
  add_number_option(app, "--window-seconds", hostile.window_seconds,
                    "With --hostile: longest attack between two calm windows", 1u, 1'000u);
  std::set<std::string> names;
  for (const attack::Attack& each : attack::attacks()) names.emplace(each.name);
  app.add_option("--without", hostile.without, "With --hostile: leave out this attack; repeatable")
      ->check(CLI::IsMember(names));
  app.add_option(
         "--check", options.limits_path,
         "With --hostile: exit with 3 unless the figures are within the limits of this file")
      ->check(CLI::ExistingFile);
}

void describe_models(CLI::App& app, Options& options) {
  app.add_flag("--models", options.has_models,
               "Serve two models by two workers each, change and damage their files, and stop the "
               "readers of logs")
      ->excludes("--hostile");
}

void describe_adapters(CLI::App& app, Options& options) {
  app.add_flag(
         "--adapters", options.has_adapters,
         "Serve 40 customers under an adapter each, with memory for 30, revoke, unload, remove "
         "and add adapters, and kill processes")
      ->excludes("--hostile")
      ->excludes("--models");
}

/// The lengths that fit to each kind of run, unless the user gave others.
void choose_lengths(Options& options) {
  HostileSettings& settings = options.settings;
  if (options.is_hostile) settings.slow_motion_us = kHostileSlowMotion_us;
  settings.seconds = options.seconds.value_or(options.is_hostile ? 60 : 120);
  const bool is_short = options.has_models || options.has_adapters;
  settings.max_tokens = options.max_tokens.value_or(options.is_hostile ? 400 : is_short ? 80 : 120);
}

Result<int> run_chosen(const Options& options, const Poller& poller) {
  if (options.is_hostile) return run_attacks(options, poller);
  if (options.has_models) return run_two_models(options.settings, poller);
  if (options.has_adapters) return run_customers(options.settings, poller);
  return run_kills(options.settings, poller);
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Kill and stop processes and revoke leases at random, then check the histories",
               "leasehold-soak"};
  describe(app, options);
  describe_hostile(app, options);
  describe_models(app, options);
  describe_adapters(app, options);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  choose_lengths(options);
  return runner::run_program(app.get_name(),
                             [&](const Poller& poller) { return run_chosen(options, poller); });
}
