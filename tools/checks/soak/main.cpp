/// leasehold-soak: kills, stops and takes back at random for a long time, and judges what is left.
#include <CLI/CLI.hpp>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>

#include "common/command_line.hpp"
#include "common/version.hpp"
#include "tools/checks/soak/report.hpp"
#include "tools/checks/soak/round.hpp"
#include "tools/cli/report_file.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::soak;

constexpr int kChecksFailed = 1;
constexpr int kInterrupted = 130;  // As a shell calls the end by SIGINT.

namespace fs = std::filesystem;

Result<fs::path> fresh_directory() {
  std::string pattern = fs::temp_directory_path() / "leasehold-soak-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return fail_errno(Errc::SystemError, "mkdtemp " + pattern, errno);
  }
  return fs::path(pattern);
}

/// Removed when all was kept; what was not kept is checked into there.
struct Directory {
  fs::path path;
  bool keep = true;
  ~Directory() {
    std::error_code ignored;
    if (!keep) fs::remove_all(path, ignored);
  }
};

/// Each round's seed is one more than the last one's, so a round that failed is repeated by
/// --seed S --kills (one round's).
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

Result<bool> run(const Settings& settings, const demo::Poller& poller) {
  std::optional<cli::ReportFile> report;
  if (settings.report_path) report = TRY(cli::ReportFile::open(*settings.report_path));
  Directory directory{.path = TRY(fresh_directory())};
  std::cout << "seed " << settings.seed << std::endl;
  Summary summary(settings);
  const auto done = run_rounds(settings, poller, directory.path, summary);
  directory.keep = !done || !summary.all_passed();
  if (directory.keep) std::cerr << "Histories and logs: " << directory.path.string() << '\n';
  std::cout << '\n' << summary.text();
  const auto written = report ? report->write(summary.json().dump(2) + "\n") : Result<void>{};
  if (!done) return std::unexpected(done.error());
  std::cout << (summary.all_passed() ? "\nAll promises kept.\n"
                                     : "\nNOT all promises were kept.\n");
  TRY(written);
  return summary.all_passed();
}

void describe(CLI::App& app, Settings& settings) {
  app.set_version_flag("--version", "leasehold-soak " + std::string(version()));
  app.add_option("--bin-dir", settings.bin_dir, "Where the programs are")->required();
  app.add_option("--model", settings.model_path, "A GGUF model")->required();
  app.add_option("--seed", settings.seed, "Names everything that is left to chance")
      ->capture_default_str();
  app.add_option("--kills", settings.kills, "End after so many SIGKILLs")
      ->check(CLI::Range(1u, 1'000'000u))
      ->capture_default_str();
  app.add_option("--max-minutes", settings.max_minutes, "Or after so long")
      ->check(CLI::Range(1u, 10'000u))
      ->capture_default_str();
  app.add_option("--kills-per-round", settings.kills_per_round, "Judge after so many")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--tenants", settings.tenants, "Side by side")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option("--max-tokens", settings.max_tokens, "How long each text is")
      ->check(CLI::Range(10, 400))
      ->capture_default_str();
  app.add_flag("!--no-store", settings.store,
               "Nobody keeps the broker's descriptors, and it keeps no journal: each starts anew");
  app.add_option("--report", settings.report_path, "Write the summary there, as JSON");
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  CLI::App app{"Kills, stops and takes back at random, and judges what is left.", "leasehold-soak"};
  describe(app, settings);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const auto poller = demo::Poller::create();
  if (!poller) return print_error(app.get_name(), poller.error());
  const auto all_passed = run(settings, *poller);
  if (poller->interrupted()) return kInterrupted;
  if (!all_passed) return print_error(app.get_name(), all_passed.error());
  return finish_program(app.get_name(), *all_passed ? kExitOk : kChecksFailed);
}
