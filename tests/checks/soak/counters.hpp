/// Counts the actions of rounds and their effects, and sums up all rounds as text and as JSON.
/// Pure.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/checks/runner/check.hpp"

namespace leasehold::soak {

struct Counters {
  runner::ActionCounts actions{};
  std::uint64_t brokers = 0, workers = 0, tenants = 0;  ///< Processes started.
  std::uint64_t answered = 0;                           ///< Tenants with a complete answer.
  std::map<std::string, std::uint64_t> gave_up;         ///< Failed tenants, by error code.
  std::uint64_t leases = 0, revoked_leases = 0, tokens = 0, extents_read = 0;
  std::uint64_t swaps = 0;     ///< Preemptions that moved blocks to swap.
  std::uint64_t reclaims = 0;  ///< Leases of the scavenger that ended for the guaranteed tenant.
  std::uint64_t published_texts = 0;  ///< Leases under which the shared text was computed.
  /// Blocks of published texts that prompts used, as reported by workers.
  std::uint64_t published_blocks = 0;
  std::uint64_t text_ends = 0;  ///< Streams that ended because a published text ended.
  std::uint64_t rebinds = 0;    ///< Texts that continued under another lease, in any mode.
  std::uint64_t moves = 0;      ///< Rebinds that moved a text while its first lease was live.
  std::uint64_t adoptions = 0;  ///< Extents that a worker's successor adopted.

  /// Whole texts that were disturbed by more than the end of a lifetime.
  std::uint64_t disturbed_texts = 0;

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
std::uint64_t text_ends(const std::vector<runner::Text>& texts);

/// Counts the whole texts whose process was killed, or which a revocation, a drain, a lost
/// connection or a replaced worker interrupted. A text that only moved at the end of a lifetime
/// does not count.
std::uint64_t disturbed_texts(const std::vector<runner::Text>& texts);

/// Precondition: the record has a search for canaries and a published text.
Counters count(const runner::Record& record);

/// The errors of tenants that gave up.
std::vector<std::string> failures(const runner::Record& record);

struct RoundResult {
  Counters counters;
  std::vector<runner::Check> checks;
  std::vector<std::string> failures;
};

/// One check over all rounds.
struct CheckSummary {
  std::string promise;
  std::uint32_t rounds = 0, passed = 0;
  std::string seen;  ///< Values of the first round that failed, else of the last one.
};

class Summary {
 public:
  /// With fewer disturbed texts than `least_disturbed_texts`, all_passed() is false.
  explicit Summary(std::uint64_t seed, std::uint64_t least_disturbed_texts = 0)
      : seed_(seed), least_disturbed_texts_(least_disturbed_texts) {}
  void add(const RoundResult& round);

  bool all_passed() const;
  std::uint64_t kills() const { return runner::kills(counters_.actions); }
  std::string text() const;
  wire::Json json() const;

 private:
  std::uint64_t seed_;
  std::uint64_t least_disturbed_texts_;
  Counters counters_;
  std::uint32_t rounds_ = 0;
  std::vector<CheckSummary> summaries_;
};

/// Returns one line of progress.
std::string round_text(std::uint64_t seed, const RoundResult& round);

}  // namespace leasehold::soak
