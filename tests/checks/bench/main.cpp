/// leasehold-bench: measures revocation on real processes, and the speed of the engine.
///
/// Exit codes: 0 done (and within the limits), 1 a limit is exceeded or was not measured, 2 wrong
/// usage, otherwise the code of the error (common/errc.hpp).
#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "tests/checks/bench/commands.hpp"
#include "tools/cli/unknown_command.hpp"

using namespace leasehold;
using namespace leasehold::bench;

int main(int argc, char** argv) {
  const std::vector<Command> all = commands();
  CLI::App app{"Measure revocation on real processes, and the speed of the engine",
               "leasehold-bench"};
  app.set_version_flag("--version", "leasehold-bench " + std::string(version()));
  app.require_subcommand(1);
  std::map<std::string_view, ReportOptions> reports;
  for (const Command& command : all) {
    CLI::App& described = *app.add_subcommand(command.name, command.description);
    command.describe(described);
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
  const auto command =
      std::ranges::find_if(all, [&](const Command& each) { return app.got_subcommand(each.name); });
  const Result<int> done = run_report(reports.at(command->name), command->measure);
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
