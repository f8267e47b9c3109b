/// What the soak with two models recorded. Its judge reads nothing else.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/checks/demo/tenant_record.hpp"
#include "tests/checks/soak/history.hpp"
#include "tests/checks/soak/models/model_actions.hpp"

namespace leasehold::soak {

/// A text of one model that ended, with how its process ended.
struct ModelText {
  std::string model;
  demo::TenantRecord record;
  std::vector<std::int32_t> undisturbed;
  int exit_status = 0;  ///< The exit code, or 128 + signal.
};

struct ModelsHistory {
  std::array<std::uint64_t, kModelActionCount> actions{};
  std::vector<ModelText> texts;
  std::vector<ExitRecord> ends;  ///< Of brokers and workers that the soak did not kill.
  /// Leases that the broker revoked while nothing read its log, and while nothing read a worker's.
  std::uint64_t revoked_without_reader = 0;
  std::uint64_t calm_texts = 0;  ///< That ended well after the last disturbance.
};

}  // namespace leasehold::soak
