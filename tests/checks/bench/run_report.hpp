/// The common part of all subcommands: measures, writes the report and checks it.
#pragma once

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "common/result.hpp"

namespace CLI {
class App;
}

namespace leasehold::bench {

/// The results of a subcommand.
struct Report {
  nlohmann::json json;
  std::string text;
  std::string svg = {};  ///< Empty: the subcommand has no plot.
};

struct ReportOptions {
  std::string name;  ///< Name of the subcommand and of its files; selects its limits.
  bool has_plot = false;
  std::string out_dir = {};      ///< Empty: no files.
  std::string limits_path = {};  ///< Empty: no limits.
};

/// Describes --out and --check.
void describe_report(CLI::App& app, ReportOptions& options);

/// Returns the exit code: 0, or 1 if a limit is exceeded or was not measured. Opens limits and
/// files before it measures, so that a wrong path fails at once.
/// Errors: those of `measure`, of reading limits and of writing files.
Result<int> run_report(const ReportOptions& options,
                       const std::function<Result<Report>()>& measure);

}  // namespace leasehold::bench
