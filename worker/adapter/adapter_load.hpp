/// One attempt to load a version of an adapter, and the loaded version that it becomes.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "worker/adapter/adapter_actions.hpp"
#include "worker/adapter/adapter_names.hpp"
#include "worker/adapter/adapter_retry.hpp"
#include "worker/adapter/adapter_victim.hpp"

namespace leasehold {

struct AdapterLoad {
  enum class Phase : std::uint8_t {
    Opening,  ///< The file is read and the broker is asked for a lease.
    Filling,  ///< The matrices are copied, then the broker is notified.
    Ready,    ///< Requests may use it.
    Draining  ///< Ready, but no new request uses it; it leaves when no request holds it.
  };

  AdapterLoadId id;
  ResolvedAdapter adapter;
  TimePoint began;
  std::uint32_t reloads = 0;  ///< Attempts before this one whose lease was revoked.
  Phase phase = Phase::Opening;
  std::vector<AdapterWaiter> waiters = {};               ///< Until Ready.
  std::optional<AdapterContent> content = {};            ///< Once the file is open.
  std::optional<LeaseId> lease = {};                     ///< From Filling on.
  std::shared_ptr<const AdapterMatrices> matrices = {};  ///< Once copied.
  AdapterUse use = {};                                   ///< Ready and Draining.
  AdapterEviction drains_for = AdapterEviction::Replaced;
  TimePoint last_used = {};
  /// The call that failed last, while it is repeated.
  struct Repeated {
    TimePoint at = kNoRetry;  ///< The next attempt.
    std::optional<Error> failure = {};
  } repeated = {};
  /// The adapters that were evicted for this one.
  struct Freed {
    std::uint64_t bytes = 0;
    TimePoint at = {};  ///< When the last of them was.
  } freed = {};

  bool is_loaded() const { return phase == Phase::Ready || phase == Phase::Draining; }
  /// True while no request holds the loaded adapter.
  bool is_idle() const { return use.use_count() == 1; }
  AdapterNames::Key key() const { return {owner(), adapter.name}; }
  /// Empty for a shared adapter, which the broker finds without a tenant too.
  TenantId owner() const { return adapter.owner.value_or(TenantId{}); }
  EvictionCandidate candidate() const {
    return {.owner = adapter.owner,
            .is_pinned = adapter.is_pinned,
            .is_idle = is_loaded() && is_idle(),
            .last_used = last_used};
  }
};

}  // namespace leasehold
