/// Sums up all rounds as text and as JSON. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tests/checks/soak/counters.hpp"

namespace leasehold::soak {

/// One check over all rounds.
struct CheckSummary {
  std::string promise;
  std::uint32_t rounds = 0, passed = 0;
  std::string seen;  ///< From the first round that failed, else from the last.
};

class Summary {
 public:
  /// Not all passed with fewer `disturbed_texts` than required.
  explicit Summary(std::uint64_t seed, std::uint64_t least_disturbed_texts = 0)
      : seed_(seed), least_disturbed_texts_(least_disturbed_texts) {}
  void add(const RoundResult& round);

  bool all_passed() const;
  std::uint64_t kills() const { return counters_.kills(); }
  std::string text() const;
  wire::Json json() const;

 private:
  std::uint64_t seed_;
  std::uint64_t least_disturbed_texts_;
  Counters counters_;
  std::uint32_t rounds_ = 0;
  std::vector<CheckSummary> summaries_;
};

/// One line of progress.
std::string round_text(std::uint64_t seed, const RoundResult& round);

}  // namespace leasehold::soak
