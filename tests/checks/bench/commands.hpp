/// The subcommands of leasehold-bench: their options, and what each measures.
#pragma once

#include <functional>
#include <vector>

#include "tests/checks/bench/run_report.hpp"

namespace leasehold::bench {

struct Command {
  const char* name;
  const char* description;
  std::function<void(CLI::App& app)> describe;  ///< Adds the options.
  std::function<Result<Report>()> measure;      ///< Called after the options were parsed.
  bool has_plot = false;
};
std::vector<Command> commands();

}  // namespace leasehold::bench
