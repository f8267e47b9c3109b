/// Which transition met which fault, how often.
///
/// A transition *meets* a fault when it happens after the fault struck, in the same schedule: the
/// rest of the world must go on as promised while somebody is dead or stands still there. The
/// transitions are those of the `may_become` tables of the code, so a new one cannot be forgotten.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tests/simulation/machine.hpp"

namespace leasehold::simulation {

enum class Kind : std::uint8_t { Lease, Extent, Worker, Region };

struct Transition {
  Kind kind{};
  std::uint8_t from = 0;
  std::uint8_t to = 0;
  bool operator==(const Transition&) const = default;
};

/// Every transition of every table.
const std::vector<Transition>& all_transitions();
std::optional<std::size_t> index_of(const Transition& transition);
std::string name(const Transition& transition);

/// One column: a label and what is done there.
struct FaultColumn {
  FaultSite site{};
  Strike strike{};
};
inline constexpr std::size_t kColumnCount = std::size_t{kFaultSiteCount} * 2;
constexpr std::size_t index_of(FaultColumn column) {
  return static_cast<std::size_t>(column.site) * 2 + static_cast<std::size_t>(column.strike);
}
constexpr FaultColumn column_at(std::size_t index) {
  return {static_cast<FaultSite>(index / 2), static_cast<Strike>(index % 2)};
}
std::string name(FaultColumn column);

/// Why this pair can never be met; nothing when it can.
std::optional<std::string> why_impossible(const Transition& transition, FaultColumn column);

class Coverage {
 public:
  Coverage();
  void met(const Transition& transition, FaultColumn column);
  void happened(const Transition& transition);
  void broker_restarted(bool with_store) { ++restarts_[with_store]; }
  void struck(FaultColumn column) { ++struck_[index_of(column)]; }
  void add(const Coverage& other);

  /// Pairs that can be met and were met fewer than `least` times, one line each.
  std::vector<std::string> shortfalls(std::uint64_t least) const;
  /// Pairs declared impossible that were met all the same: the declaration is wrong.
  std::vector<std::string> wrongly_impossible() const;
  std::string table() const;

 private:
  std::vector<std::array<std::uint64_t, kColumnCount>> met_;
  std::vector<std::uint64_t> happened_;
  std::array<std::uint64_t, kColumnCount> struck_{};
  std::array<std::uint64_t, 2> restarts_{};
};

}  // namespace leasehold::simulation
