/// Stage after stage, each a process of its own with a share of the time, and one report of all.
///
/// Lines are printed as the stages find them, and the report stands on the disk after every stage.
/// A stage that fails, dies or does not end in its time is named as such; the others go on.
#pragma once

#include <iosfwd>
#include <string>

#include "tools/checks/gpu_check/settings.hpp"
#include "tools/checks/gpu_check/stage_report.hpp"

namespace leasehold::gpu_check {

inline constexpr int kChecksFailed = 1;

/// What is wrong with these names, commas between them; nothing when all are stages'.
std::string check_stages(const std::string& names);

/// The exit code: 0 when all that ran was right, kChecksFailed, or that of the error (NoDevice …)
/// for which nothing could run. Errors: SystemError when no report can be written.
Result<int> orchestrate(const Settings& settings, std::ostream& out);

/// One stage in this process; its exit code.
int run_stage(const Settings& settings, const std::string& stage);

}  // namespace leasehold::gpu_check
