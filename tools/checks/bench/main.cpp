/// leasehold-bench: measures revocation on real processes, and what a batch gains.
///
/// Exit codes: 0 done (and within the limits), 1 a limit was not held, 2 wrong usage, otherwise the
/// code of the error (common/errc.hpp).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <fstream>
#include <iostream>
#include <iterator>

#include "common/command_line.hpp"
#include "common/text_file.hpp"
#include "common/version.hpp"
#include "tools/checks/bench/batch_bench.hpp"
#include "tools/checks/bench/limits.hpp"
#include "tools/checks/bench/poll_cost.hpp"
#include "tools/checks/bench/report.hpp"
#include "tools/checks/bench/revoke_bench.hpp"
#include "tools/cli/report_file.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

constexpr int kOverLimit = 1;
constexpr std::size_t kMaxLimitsBytes = 1 << 20;

struct Options {
  RevokeConfig revoke;
  std::vector<std::string> only;
  std::string json_path, plot_path, limits_path;
  StepConfig step;
  BatchConfig batch;
  std::uint64_t gate_units = 0;
};

/// Files that are written in the end.
struct Reports {
  std::optional<cli::ReportFile> json;
  std::optional<cli::ReportFile> plot;
};

Result<Reports> open_reports(const Options& options) {
  Reports reports;
  if (!options.json_path.empty() && options.json_path != "-")
    reports.json = TRY(cli::ReportFile::open(options.json_path));
  if (!options.plot_path.empty()) reports.plot = TRY(cli::ReportFile::open(options.plot_path));
  return reports;
}

/// Those of the limits file that are for this command: "batch.…" for `batch`, the others for
/// `revoke`. Read before the long part: a file that cannot be read shall not cost ten minutes.
Result<std::vector<Limit>> read_limits(const Options& options, bool of_batch) {
  std::vector<Limit> limits;
  if (options.limits_path.empty()) return limits;
  const std::string text = TRY(read_text_file(options.limits_path, kMaxLimitsBytes));
  limits = TRY(parse_limits(text));
  std::erase_if(limits, [of_batch](const Limit& limit) {
    return limit.name.starts_with("batch.") != of_batch;
  });
  return limits;
}

int judge(const nlohmann::json& report, const std::vector<Limit>& limits) {
  const std::vector<LimitCheck> checks = check_limits(report, limits);
  if (!checks.empty()) std::cerr << limit_checks_text(checks);
  return std::ranges::all_of(checks, &LimitCheck::ok) ? kExitOk : kOverLimit;
}

/// The exit code.
Result<int> revoke(const Options& options) {
  const std::vector<Limit> limits = TRY(read_limits(options, false));
  const Reports reports = TRY(open_reports(options));
  const auto progress = [](const std::string& what) { std::cerr << "bench: " << what << '\n'; };
  const RevokeReport report = TRY(run_revoke_bench(options.revoke, progress));
  std::cout << (options.json_path == "-" ? report.json.dump(2) + "\n" : report_text(report.json));
  if (reports.json) TRY(reports.json->write(report.json.dump(2) + "\n"));
  if (reports.plot) TRY(reports.plot->write(percentile_svg(clock_panels(report.clocks))));
  return judge(report.json, limits);
}

Result<int> batch(const Options& options) {
  const std::vector<Limit> limits = TRY(read_limits(options, true));
  const Reports reports = TRY(open_reports(options));
  const nlohmann::json report = TRY(measure_batch(options.batch));
  const std::string text = report.dump(2) + "\n";
  std::cout << text;
  if (reports.json) TRY(reports.json->write(text));
  return judge(report, limits);
}

Result<int> step(const Options& options) {
  const StepCost cost = TRY(measure_step(options.step));
  std::cout << fmt::format("units_per_step={} step_us={:.1f} steps={}\n", cost.units, cost.step_us,
                           options.step.steps);
  return kExitOk;
}

Result<int> gate(const Options& options) {
  const double gate_ns = TRY(measure_gate_ns(options.gate_units));
  std::cout << fmt::format("gate_ns={:.2f} units={}\n", gate_ns, options.gate_units);
  return kExitOk;
}

void describe_revoke(CLI::App& app, Options& options) {
  app.add_option("--bin-dir", options.revoke.bin_dir, "Where the programs are")->required();
  app.add_option("--demo-model", options.revoke.demo_model, "A small GGUF model")->required();
  app.add_option("--large-model", options.revoke.large_model,
                 "A GGUF model of the 0.5B shape; without it only the small one is measured");
  app.add_flag("--quick", options.revoke.quick, "A minute instead of ten: fewer runs and flips");
  app.add_option("--only", options.only, "Only these measurements; may be given often")
      ->check(
          CLI::IsMember(std::set<std::string>(std::begin(kMeasurements), std::end(kMeasurements))));
  app.add_option("--tenants", options.revoke.tenants, "Runs of the clocks; may be given often")
      ->check(CLI::Range(1, 64));
  app.add_option("--flips", options.revoke.flips, "In each run of the clocks")
      ->check(CLI::Range(1, 4'000));
  app.add_option("--leases", options.revoke.mass_leases, "Of the mass revocation")
      ->check(CLI::Range(1, 16'000))
      ->capture_default_str();
  app.add_option("--seed", options.revoke.seed, "Of the moments at which is flipped")
      ->capture_default_str();
  app.add_option("--json", options.json_path, "Write the report there; - for stdout");
  app.add_option("--plot", options.plot_path, "Write the clocks' percentiles there, as SVG");
  app.add_option("--check", options.limits_path, "Exit with 1 unless within this file's limits");
}

void describe_batch(CLI::App& app, Options& options) {
  app.add_option("--model", options.batch.model_path, "A GGUF model")->required();
  app.add_option("--sequences", options.batch.sequences, "In one step")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rounds", options.batch.rounds, "Serial and batched in turn")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
  app.add_option("--json", options.json_path, "Write the report there too");
  app.add_option("--check", options.limits_path, "Exit with 1 unless within this file's limits");
}

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measures revocation on real processes, and what a batch gains.", "leasehold-bench"};
  app.set_version_flag("--version", "leasehold-bench " + std::string(version()));
  app.require_subcommand(1);
  CLI::App& revoke_command = *app.add_subcommand("revoke", "Everything about revocation");
  describe_revoke(revoke_command, options);
  CLI::App& batch_command = *app.add_subcommand("batch", "Tokens a second, batched and serial");
  describe_batch(batch_command, options);
  CLI::App& step_command = *app.add_subcommand("step", "Decode steps alone, to count instructions");
  step_command.add_option("--model", options.step.model_path, "A GGUF model")->required();
  step_command.add_option("--steps", options.step.steps, "How many")->check(CLI::Range(1, 200));
  CLI::App& gate_command = *app.add_subcommand("gate", "The gate alone, to count instructions");
  gate_command.add_option("--units", options.gate_units, "How many")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  if (!options.only.empty())
    options.revoke.measurements = {options.only.begin(), options.only.end()};
  const Result<int> done = revoke_command  ? revoke(options)
                           : batch_command ? batch(options)
                           : step_command  ? step(options)
                                           : gate(options);
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
