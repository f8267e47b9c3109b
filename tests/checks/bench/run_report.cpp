#include "tests/checks/bench/run_report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>

#include "common/cli/command_line.hpp"
#include "common/machine/text_file.hpp"
#include "tests/checks/bench/limits.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/report/report_directory.hpp"

namespace leasehold::bench {
namespace {

constexpr int kOverLimit = 1;
constexpr std::size_t kMaxLimitsBytes = 1 << 20;
/// The first keys of the limits of these subcommands.
constexpr std::string_view kKeysOfSubcommands[] = {
    "engine", "serve",  "swap",     "sleep",        "confine",     "recover",
    "peer",   "http",   "control",  "speculate",    "peer_serve",  "gateway",
    "cell",   "states", "adapters", "instructions", "certificates"};
/// The first keys of the limits of `revoke`.
constexpr std::string_view kKeysOfRevoke[] = {"t_refuse_us",
                                              "t_refuse_in_step_us",
                                              "t_handed_us",
                                              "t_error_us",
                                              "t_quiet_us",
                                              "t_reuse_us",
                                              "without_run_queue_delay",
                                              "poll",
                                              "storm",
                                              "mass",
                                              "cycles",
                                              "deaths"};

std::string subcommand_key(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

/// Returns the key of the subcommand that measures the limited value.
Result<std::string> key_of(const Limit& limit) {
  std::string first = limit.name.substr(0, limit.name.find('.'));
  if (std::ranges::count(kKeysOfRevoke, first) > 0) return "revoke";
  if (std::ranges::count(kKeysOfSubcommands, first) > 0) return first;
  return fail(
      Errc::BadRequest,
      fmt::format("no subcommand measures {}; the first key of a limit is one of {}, {}",
                  limit.name, fmt::join(kKeysOfSubcommands, ", "), fmt::join(kKeysOfRevoke, ", ")));
}

Result<std::vector<Limit>> read_limits(const ReportOptions& options) {
  std::vector<Limit> limits;
  if (options.limits_path.empty()) return limits;
  const std::string text = TRY(read_text_file(options.limits_path, kMaxLimitsBytes));
  const std::vector<Limit> all = TRY(parse_limits(text));
  const std::string key = subcommand_key(options.name);
  for (const Limit& limit : all) {
    if (TRY(key_of(limit)) == key) limits.push_back(limit);
  }
  if (!limits.empty()) return limits;
  return fail(Errc::BadRequest, fmt::format("{} has no limit of {}; leave out --check",
                                            options.limits_path, options.name));
}

}  // namespace

void describe_report(CLI::App& app, ReportOptions& options) {
  app.add_option("--out", options.out_dir,
                 options.has_plot ? "Directory for the report as JSON, text and SVG"
                                  : "Directory for the report as JSON and text");
  app.add_option("--check", options.limits_path,
                 "Exit with 1 unless the figures are within the limits of this file");
}

Result<int> run_report(const ReportOptions& options,
                       const std::function<Result<Report>()>& measure) {
  const std::vector<Limit> limits = TRY(read_limits(options));
  std::vector<std::string> suffixes = {"json", "txt"};
  if (options.has_plot) suffixes.push_back("svg");
  const auto files = TRY(ReportDirectory::open(options.out_dir, options.name, suffixes));
  const Report report = TRY(measure());
  const std::vector<LimitCheck> checks = check_limits(report.json, limits);
  const std::string checks_text = checks.empty() ? "" : limit_checks_text(checks);
  std::cout << report.text;
  std::cerr << checks_text;
  TRY(files.write("json", report.json.dump(2) + "\n"));
  TRY(files.write("txt", report.text + checks_text));
  if (options.has_plot) TRY(files.write("svg", report.svg));
  return std::ranges::all_of(checks, &LimitCheck::ok) ? kExitOk : kOverLimit;
}

}  // namespace leasehold::bench
