/// The groups of checks that `judge` runs.
#pragma once

#include <string>
#include <vector>

#include "tests/checks/soak/judge.hpp"

namespace leasehold::soak {

/// Counts the samples of one check and keeps its first violation.
class Finding {
 public:
  /// `unit`: plural noun for the samples.
  Finding(std::string promise, std::string unit)
      : promise_(std::move(promise)), unit_(std::move(unit)) {}

  void checked(std::uint64_t count = 1) { checked_ += count; }
  void wrong(std::string what);
  /// Fails with fewer than `at_least` samples.
  demo::Check check(std::uint64_t at_least = 1) const;

 private:
  std::string promise_, unit_, first_;
  std::uint64_t checked_ = 0, wrong_ = 0;
};

/// A history and the lease traces of its brokers.
struct Case {
  const History& history;
  std::vector<LeaseTraces> instances;  ///< One per broker.
};

/// Leases go Live → Revoked → Fenced with proof; no row of a step runs under a fenced lease.
void judge_leases(const Case& all, std::vector<demo::Check>& checks);

/// Live holders get one typed error per revocation; processes end once; texts are correct.
void judge_holders(const Case& all, std::vector<demo::Check>& checks);

/// Readers of a published text, and a guaranteed tenant beside a scavenger. No checks without them.
void judge_sharing(const Case& all, std::vector<demo::Check>& checks);

/// Extents, sums of bytes, canaries.
void judge_memory(const Case& all, std::vector<demo::Check>& checks);

}  // namespace leasehold::soak
