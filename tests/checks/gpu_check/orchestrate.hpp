/// Runs each stage as a process with a share of the time, and writes one report.
///
/// Prints lines as they arrive and writes the report after every stage. The report names a stage
/// that fails, dies or exceeds its time; the other stages still run.
#pragma once

#include <iosfwd>
#include <string>

#include "tests/checks/gpu_check/settings.hpp"
#include "tests/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

inline constexpr int kChecksFailed = 1;

/// "machine, bits, …": every stage, in the order of execution.
std::string stage_names();

/// Error text for comma-separated names that include an unknown stage; empty when all are known.
std::string check_stages(const std::string& names);

/// Returns the exit code: 0, kChecksFailed, or that of an error (NoDevice …) that prevents every
/// stage. Errors: SystemError when the report cannot be written.
Result<int> orchestrate(const Settings& settings, std::ostream& out);

/// Runs one stage in this process and returns the exit code.
int run_stage(const Settings& settings, const std::string& stage);

}  // namespace leasehold::gpu_check
