/// Runs two models with two workers each. Exchanges and damages files, revokes weights and leases,
/// kills workers and stops log readers while tenants of both models stream texts. Each worker has a
/// model file of its own, and each program's log is a pipe.
///
///   undisturbed texts ─► disturbances ─► every file whole, every reader reads ─► last texts
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tests/checks/runner/check.hpp"
#include "tests/checks/runner/poller.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

/// Precondition: the directory exists and is empty. Errors: those of reading the model, of writing
/// files and of runner::System; TimedOut when the undisturbed or the last texts do not end.
Result<runner::Record> run_models(const Settings& settings, const runner::Poller& poller,
                                  const std::filesystem::path& directory);

/// The shares of each action. Files are restored as often as they are damaged, so that most of the
/// time each model has a worker that can serve it.
extern const runner::Script kModelScript;

/// Checks the record. Pure.
std::vector<runner::Check> judge_models(const runner::Record& record);

/// Returns the counts of actions, the counts of texts by how they ended, and a line per check.
std::string models_text(const runner::Record& record, const std::vector<runner::Check>& checks);

}  // namespace leasehold::soak
