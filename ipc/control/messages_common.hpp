/// What several messages share. The rules for all messages: ipc/control/messages.hpp.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::wire {

using Json = nlohmann::json;

/// What a lease covers: an engine's weights on one worker, or one tenant's KV on one worker.
enum class LeaseScope : std::uint8_t { Engine, Tenant };
std::string_view name(LeaseScope scope);  ///< "engine", "tenant"

/// Who is a victim first when memory is short; stored today, used by later policy.
enum class Tier : std::uint8_t { Guaranteed, Standard, Scavenger };
std::string_view name(Tier tier);  ///< "guaranteed", "standard", "scavenger"

struct Empty {
  Json to_json() const;
  static Result<Empty> from_json(const Json& json);
};

}  // namespace leasehold::wire
