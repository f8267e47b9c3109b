/// Shares the work on masks in one step: which sequence works next, and for how many units.
///
/// A turn is one slice. It goes to the tenant that has used the fewest units in this step, and
/// there to the sequence that has spent the fewest on its mask. So a cheap mask overtakes an
/// expensive one, and one tenant's masks delay another's by less than a slice. Of equal tenants the
/// one after `last` comes first, so no tenant is always the one that the step has no units for.
///
/// A tenant's part of the step is fixed. Unused parts are not given to others, because the rows of
/// every tenant wait for that work.
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

/// Bounds on the work on masks. The worst honest mask visits every node of the vocabulary once.
struct MaskLimits {
  std::size_t slice_units = std::size_t{1} << 14;  ///< In one unit of the engine's gate.
  std::size_t masks_per_step = 8;                  ///< Worst honest masks.
  std::size_t step_units = 0;                      ///< 0: by the vocabulary and masks_per_step.
  std::size_t token_units = TokenRules::kTokenUnits;
};

class MaskTurns {
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

  /// The limits of a step in which sequences of `tenants` tenants run. Every tenant may compute
  /// one of the worst honest masks, as long as the step has units.
  static Limits limits_for(const MaskLimits& limits, std::size_t nodes, std::size_t tenants);

  MaskTurns(const Limits& limits, TenantId last) : limits_(limits), last_(std::move(last)) {}

  void add(std::uint32_t sequence, const TenantId& tenant, std::size_t spent_before);
  /// Nothing when no sequence needs work, or none may work in this step.
  std::optional<Turn> next() const;
  /// Records what the sequence did in its turn. `is_over`: it needs no more work.
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
