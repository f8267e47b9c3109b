/// leasehold-bench: measures revocation on real processes, and the speed of the engine.
///
/// Exit codes: 0 done (and within the limits), 1 a limit is exceeded or was not measured, 2 wrong
/// usage, otherwise the code of the error (common/errc.hpp).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "tests/checks/bench/bench_options.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/run_report.hpp"
#include "tools/cli/unknown_command.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

Result<Report> revoke(const Options& options) {
  const auto progress = [](const std::string& what) { std::cerr << "bench: " << what << '\n'; };
  RevokeReport report = TRY(run_revoke_bench(options.revoke, progress));
  std::string text = report_text(report.json);
  return Report{std::move(report.json), std::move(text),
                percentile_svg(clock_panels(report.clocks))};
}

Report json_report(nlohmann::json json) {
  std::string text = json.dump(2) + "\n";
  return {std::move(json), std::move(text), {}};
}

Result<Report> engine(const Options& options) {
  return json_report(TRY(measure_engine(options.engine)));
}

Result<Report> figures(const Options& options) {
  return json_report(TRY(measure_figures(options.engine)));
}

/// Reads what a driver in tests/checks/peer measured: {"report", "text"} on stdin.
Result<Report> from_driver(const Options&) {
  const auto measured = nlohmann::json::parse(std::cin, nullptr, false);
  if (!measured.is_object() || !measured.contains("report") || !measured.contains("text"))
    return fail(Errc::MalformedMessage,
                "stdin has no report; run `tools/bench COMMAND --peer DIR`");
  return Report{measured["report"], measured["text"]};
}

Result<Report> context(const Options& options) {
  return json_report(TRY(measure_contexts(options.context)));
}

Result<Report> kernels(const Options& options) {
  nlohmann::json json = TRY(measure_kernels(options.kernels));
  std::string text = kernels_text(json);
  return Report{std::move(json), std::move(text), {}};
}

Result<Report> serve(const Options& options) {
  return json_report(TRY(measure_serve(options.serve)));
}

Result<Report> http(const Options& options) {
  return json_report(TRY(measure_http(options.http)));
}

Result<Report> speculate(const Options& options) {
  return json_report(TRY(measure_speculation(options.speculate)));
}

Result<Report> swap(const Options& options) {
  return json_report(TRY(measure_swap(options.swap)));
}

Result<Report> recover(const Options& options) {
  return json_report(TRY(measure_recover(options.recover)));
}

Result<Report> step(const Options& options) {
  const StepCost cost = TRY(measure_step(options.step_model, options.steps));
  return Report{
      {{"units_per_step", cost.units}, {"step_us", cost.step_us}, {"steps", options.steps}},
      fmt::format("units_per_step={} step_us={:.1f} steps={}\n", cost.units, cost.step_us,
                  options.steps),
      {}};
}

Result<Report> gate(const Options& options) {
  const double gate_ns = TRY(measure_gate_ns(options.gate_units));
  return Report{{{"gate_ns", gate_ns}, {"units", options.gate_units}},
                fmt::format("gate_ns={:.2f} units={}\n", gate_ns, options.gate_units),
                {}};
}

Result<Report> launch(const Options& options) {
  const Samples samples = TRY(measure_launch(options.launch_threads, options.launches));
  nlohmann::json launch = figures_of(samples, Statistic::Distribution);
  launch["threads"] = options.launch_threads;
  return json_report({{"launch", std::move(launch)}});
}

struct Command {
  const char* name;
  const char* description;
  void (*describe)(CLI::App& app, Options& options);
  Result<Report> (*measure)(const Options& options);
  bool has_plot = false;
};
constexpr Command kCommands[] = {
    {"revoke", "Measure revocation and what it costs", describe_revoke, revoke, true},
    {"engine", "Measure tokens per second in each arithmetic", describe_engine, engine},
    {"figures", "Measure tokens per second once, for a comparison with another engine",
     describe_figures, figures},
    {"peer", "Report tokens per second of this engine and of llama.cpp, from stdin",
     [](CLI::App&, Options&) {}, from_driver},
    {"peer-serve", "Report completions over HTTP of this engine and of llama.cpp, from stdin",
     [](CLI::App&, Options&) {}, from_driver},
    {"context", "Measure a step at several lengths of context", describe_context, context},
    {"kernels", "Measure matmuls as shares of what the processor can do", describe_kernels,
     kernels},
    {"serve", "Measure running streams while a long prompt arrives", describe_serve, serve},
    {"http", "Measure what HTTP costs beside the tenants' socket", describe_http, http},
    {"speculate", "Measure texts with and without proposed tokens", describe_speculate, speculate},
    {"swap", "Measure swapping a text out and in, and computing it again", describe_swap, swap},
    {"recover", "Measure deaths of workers and rebinds in each mode", describe_recover, recover},
    {"step", "Run decode steps alone, to count instructions", describe_step, step},
    {"gate", "Run the gate alone, to count instructions", describe_gate, gate},
    {"launch", "Measure a launch of the compute threads without work", describe_launch, launch},
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measure revocation on real processes, and the speed of the engine",
               "leasehold-bench"};
  app.set_version_flag("--version", "leasehold-bench " + std::string(version()));
  app.require_subcommand(1);
  std::map<std::string_view, ReportOptions> reports;
  for (const Command& command : kCommands) {
    CLI::App& described = *app.add_subcommand(command.name, command.description);
    command.describe(described, options);
    ReportOptions& report = reports[command.name];
    report = {.name = command.name, .has_plot = command.has_plot};
    describe_report(described, report);
  }
  const std::vector<std::string> words =
      cli::options_behind_command(app, std::vector<std::string>(argv + 1, argv + argc));
  if (auto wrong = cli::unknown_command(app, words))
    return print_error(app.get_name(), Usage{.exit_code = kExitUsage, .text = *std::move(wrong)});
  if (const auto usage = parse_cli_arguments(app, words))
    return print_error(app.get_name(), *usage);
  const auto* const command = std::ranges::find_if(
      kCommands, [&](const Command& each) { return app.got_subcommand(each.name); });
  const Result<int> done =
      run_report(reports.at(command->name), [&] { return command->measure(options); });
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
