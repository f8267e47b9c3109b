/// Serves 40 customers, each under an adapter of its own, with memory for 30 texts and 30 adapters.
/// Revokes, unloads, removes and adds adapters, revokes leases and weights, and kills processes.
///
///   undisturbed texts ─► rounds of: disturbances ─► every adapter registered ─► last texts
///                                   ─► every adapter removed ─► all memory free
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tests/checks/runner/check.hpp"
#include "tests/checks/runner/poller.hpp"
#include "tests/checks/soak/settings.hpp"

namespace leasehold::soak {

/// Runs rounds of at most two minutes, of settings.seconds in all, and calls `on_round` with the
/// record of each. A round's directory is removed if `on_round` returns true.
/// Precondition: the directory exists and is empty. Errors: those of writing adapters and of
/// runner::System; TimedOut when the undisturbed or the last texts, or leases, do not end.
Result<void> run_adapters(const Settings& settings, const runner::Poller& poller,
                          const std::filesystem::path& directory,
                          const std::function<bool(const runner::Record&)>& on_round);

/// The shares of each action. A removed adapter is soon added again.
extern const runner::Script kAdapterScript;

/// Checks the record. Pure.
std::vector<runner::Check> judge_adapters(const runner::Record& record);

/// What happened to adapters and their texts, by name. Pure.
runner::NamedCounts adapter_effects(const runner::Record& record);

/// Returns the counts of actions and effects, and a line per check. Pure.
std::string adapters_text(const runner::Record& record, const std::vector<runner::Check>& checks);

}  // namespace leasehold::soak
