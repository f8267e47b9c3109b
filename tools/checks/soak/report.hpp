/// All rounds together, for people and for programs. Pure.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "tools/checks/soak/counters.hpp"
#include "tools/checks/soak/settings.hpp"

namespace leasehold::soak {

/// One promise over all rounds.
struct CheckSummary {
  std::string promise;
  std::uint32_t rounds = 0, passed = 0;
  std::string seen;  ///< Of the first round that broke it, else of the last.
};

class Summary {
 public:
  explicit Summary(const Settings& settings) : settings_(settings) {}
  void add(const RoundResult& round);

  bool all_passed() const;
  std::uint64_t kills() const { return counters_.kills(); }
  std::string text() const;
  wire::Json json() const;

 private:
  const Settings& settings_;
  Counters counters_;
  std::uint32_t rounds_ = 0;
  std::vector<CheckSummary> summaries_;
};

/// One line while it goes on.
std::string round_text(std::uint64_t seed, const RoundResult& round);

}  // namespace leasehold::soak
