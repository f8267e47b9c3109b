/// Two models, two workers of each: files exchanged and damaged, weights and leases revoked,
/// workers killed, log readers stopped, while tenants of both models stream texts.
///
///   undisturbed texts ─► disturbances ─► every file whole, every reader reads ─► last texts
#pragma once

#include <filesystem>

#include "tests/checks/demo/poller.hpp"
#include "tests/checks/soak/models/models_history.hpp"
#include "tests/checks/soak/models/settings.hpp"

namespace leasehold::soak {

/// The directory exists and is empty. Errors: those of ModelsSystem; TimedOut when the undisturbed
/// or the last texts do not end.
Result<ModelsHistory> run_models(const ModelsSettings& settings, const demo::Poller& poller,
                                 const std::filesystem::path& directory);

}  // namespace leasehold::soak
