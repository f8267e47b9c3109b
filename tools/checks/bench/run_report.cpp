#include "tools/checks/bench/run_report.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <iterator>

#include "common/command_line.hpp"
#include "common/text_file.hpp"
#include "tools/checks/bench/limits.hpp"
#include "tools/checks/bench/report.hpp"
#include "tools/cli/report_directory.hpp"

namespace leasehold::bench {
namespace {

constexpr int kOverLimit = 1;
constexpr std::size_t kMaxLimitsBytes = 1 << 20;
/// The first keys of the limits of these subcommands. All other limits are those of `revoke`.
constexpr std::string_view kKeysOfLimits[] = {
    "engine", "serve", "swap", "confine", "recover", "peer", "http", "speculate", "peer_serve"};

std::string subcommand_key(std::string name) {
  std::ranges::replace(name, '-', '_');
  return name;
}

std::string_view key_of(const Limit& limit) {
  const std::string_view first = std::string_view(limit.name).substr(0, limit.name.find('.'));
  return std::ranges::find(kKeysOfLimits, first) == std::end(kKeysOfLimits) ? "revoke" : first;
}

Result<std::vector<Limit>> read_limits(const ReportOptions& options) {
  std::vector<Limit> limits;
  if (options.limits_path.empty()) return limits;
  const std::string text = TRY(read_text_file(options.limits_path, kMaxLimitsBytes));
  limits = TRY(parse_limits(text));
  const std::string key = subcommand_key(options.name);
  std::erase_if(limits, [&](const Limit& limit) { return key_of(limit) != key; });
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
  const auto files = TRY(cli::ReportDirectory::open(options.out_dir, options.name, suffixes));
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
