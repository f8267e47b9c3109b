/// Divides one step's work on masks: decides which sequence's mask is worked on next, and for how
/// many units.
///
/// A turn is one slice. It goes to the tenant that has used the fewest units in this step, and
/// among that tenant's sequences to the one that has spent the fewest on its mask. A cheap mask
/// therefore overtakes an expensive one, and one tenant's masks delay another's by less than a
/// slice. Among tenants with equal use the next one after `last` comes first, so the same tenant is
/// not left out in every step.
///
/// Each tenant has a fixed part of the step's units. Unused units are not given to other tenants,
/// because every tenant's rows wait until the work on masks ends.
///
/// Pure. Units: those of GrammarMatcher and PieceTrie. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "common/ids.hpp"
#include "worker/engine/token_rules.hpp"

namespace leasehold {

/// Limits on the work on masks. The most expensive mask of an ordinary grammar visits every node of
/// the vocabulary's trie once.
struct MaskLimits {
  std::size_t slice_units = std::size_t{1} << 14;  ///< Work in one unit of the engine's gate.
  std::size_t masks_per_step = 8;                  ///< Masks of the most expensive kind.
  std::size_t step_units = 0;  ///< 0: computed from the vocabulary and masks_per_step.
  std::size_t token_units = TokenRules::kTokenUnits;
};

class MaskSchedule {
 public:
  struct Limits {
    std::size_t slice = 0;
    std::size_t tenant = 0;
    std::size_t step = 0;
  };
  struct Turn {
    std::uint32_t sequence = 0;
    std::size_t units = 0;
  };

  /// The limits of a step in which sequences of `tenants` tenants run. Every tenant may compute one
  /// of the most expensive masks, as long as the step has units.
  static Limits limits_for(const MaskLimits& limits, std::size_t nodes, std::size_t tenants);

  MaskSchedule(const Limits& limits, TenantId last) : limits_(limits), last_(std::move(last)) {}

  void add(std::uint32_t sequence, const TenantId& tenant, std::size_t spent_before);
  /// Returns nothing when no sequence needs work, or no sequence may do more work in this step.
  std::optional<Turn> next() const;
  /// Records the units that the sequence spent in its turn. `is_over`: the sequence needs no more
  /// work.
  void record(std::uint32_t sequence, std::size_t spent, bool is_over);

  std::size_t spent() const { return spent_; }
  /// The tenant that worked last, for the next step.
  const TenantId& last() const { return last_; }

 private:
  struct Waiting {
    std::uint32_t sequence = 0;
    TenantId tenant;
    std::size_t spent = 0;
  };

  Limits limits_;
  TenantId last_;
  std::size_t spent_ = 0;
  std::map<TenantId, std::size_t> spent_by_;
  std::vector<Waiting> waiting_;
};

}  // namespace leasehold
