/// Counts the actions of a round and their effects.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "tests/checks/soak/chaos.hpp"
#include "tests/checks/soak/judge.hpp"

namespace leasehold::soak {

struct Counters {
  std::array<std::uint64_t, kScriptActionKindCount> actions{};
  std::uint64_t brokers = 0, workers = 0, tenants = 0;  ///< Processes started.
  std::uint64_t answered = 0;                           ///< Tenants with a complete answer.
  std::map<std::string, std::uint64_t> gave_up;         ///< Failed tenants, by error code.
  std::uint64_t leases = 0, revoked_leases = 0, tokens = 0, extents_read = 0;
  std::uint64_t swaps = 0;     ///< Preemptions that moved blocks to swap.
  std::uint64_t reclaims = 0;  ///< Leases of the scavenger that ended for the guaranteed tenant.
  std::uint64_t published_texts = 0;   ///< Leases under which the shared text was computed.
  std::uint64_t published_blocks = 0;  ///< Of them, blocks that prompts used, as workers report.
  std::uint64_t text_ends = 0;         ///< Streams that the end of a published text ended.
  std::uint64_t rebinds = 0;           ///< Texts that continued under another lease, however.
  std::uint64_t moves = 0;             ///< Of them, those that moved while the first lease lived.
  std::uint64_t adoptions = 0;         ///< Extents that a worker's successor adopted.

  std::uint64_t disturbed_texts = 0;  ///< Whole texts that met more than the end of a lifetime.

  std::uint64_t kills() const;
  void add(const Counters& other);
};

/// A count and its name in both reports.
struct Figure {
  std::string_view name;
  std::uint64_t Counters::* value;
};

inline constexpr Figure kFigures[] = {{"brokers_started", &Counters::brokers},
                                      {"workers_started", &Counters::workers},
                                      {"tenants_started", &Counters::tenants},
                                      {"tenants_answered", &Counters::answered},
                                      {"leases_held", &Counters::leases},
                                      {"revocations_received", &Counters::revoked_leases},
                                      {"tokens_received", &Counters::tokens},
                                      {"extents_read", &Counters::extents_read},
                                      {"swaps", &Counters::swaps},
                                      {"reclaims", &Counters::reclaims},
                                      {"published_texts", &Counters::published_texts},
                                      {"published_blocks_used", &Counters::published_blocks},
                                      {"published_text_ends", &Counters::text_ends},
                                      {"rebinds", &Counters::rebinds},
                                      {"moves", &Counters::moves},
                                      {"extents_adopted", &Counters::adoptions},
                                      {"disturbed_texts", &Counters::disturbed_texts}};

/// Counts the notifications that a published text ended.
std::uint64_t text_ends(const std::vector<TenantInstance>& tenants);

/// Counts the whole texts whose process was killed before, or that a revocation, a drain, a lost
/// connection or another worker interrupted. A text that only moved at the end of a lifetime does
/// not count.
std::uint64_t disturbed_texts(const std::vector<TenantInstance>& tenants);

struct RoundResult {
  Counters counters;
  std::vector<demo::Check> checks;
  std::vector<std::string> failures;  ///< Of tenants that gave up, with their errors.
};

}  // namespace leasehold::soak
