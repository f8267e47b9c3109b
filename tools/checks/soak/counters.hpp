/// Counts the actions of a round and their effects.
#pragma once

#include <array>
#include <map>
#include <string>

#include "tools/checks/soak/chaos.hpp"
#include "tools/checks/soak/judge.hpp"

namespace leasehold::soak {

struct Counters {
  std::array<std::uint64_t, kScriptActionKindCount> actions{};
  std::uint64_t brokers = 0, workers = 0, tenants = 0;  ///< Processes started.
  std::uint64_t answered = 0;                           ///< Tenants with a complete answer.
  std::map<std::string, std::uint64_t> gave_up;         ///< Failed tenants, by error code.
  std::uint64_t leases = 0, revoked_leases = 0, tokens = 0, extents_read = 0;

  std::uint64_t kills() const;
  void add(const Counters& other);
};

struct RoundResult {
  Counters counters;
  std::vector<demo::Check> checks;
};

}  // namespace leasehold::soak
