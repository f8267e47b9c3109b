/// The groups of checks; `judge` is_running them all.
#pragma once

#include <string>
#include <vector>

#include "tools/checks/soak/judge.hpp"

namespace leasehold::soak {

/// Counts what a promise was held against, and keeps what was wrong.
class Finding {
 public:
  /// `unit`: what is counted, in the plural.
  Finding(std::string promise, std::string unit)
      : promise_(std::move(promise)), unit_(std::move(unit)) {}

  void checked(std::uint64_t count = 1) { checked_ += count; }
  void wrong(std::string what);
  /// `at_least` so many must have been checked at.
  demo::Check check(std::uint64_t at_least = 1) const;

 private:
  std::string promise_, unit_, first_;
  std::uint64_t checked_ = 0, wrong_ = 0;
};

/// A history, and what follows from its brokers' events.
struct Case {
  const History& history;
  std::vector<LeaseTraces> instances;  ///< One per broker.
};

/// Live → Revoked → Fenced by proof, and no row of a step under a lease that was fenced before.
void judge_leases(const Case& all, std::vector<demo::Check>& checks);

/// One typed error per live holder and revoke, one end per process, and the texts.
void judge_holders(const Case& all, std::vector<demo::Check>& checks);

/// Extents, bytes, canaries.
void judge_memory(const Case& all, std::vector<demo::Check>& checks);

}  // namespace leasehold::soak
