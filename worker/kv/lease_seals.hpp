/// The seal of each lease that spilled a block: made when one is first needed, forgotten at the
/// fence.
///
/// Threads: any. A seal that is made after `forget`, for a job of an ending lease, is forgotten by
/// the next call: the engine calls it again when it drops the lease.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "worker/kv/sealed_blocks.hpp"

namespace leasehold {

class LeaseSeals {
 public:
  explicit LeaseSeals(std::uint64_t layout) : layout_(layout) {}

  /// Errors: as LeaseSeal::create.
  Result<std::shared_ptr<LeaseSeal>> of(LeaseId lease) {
    const std::scoped_lock lock(mutex_);
    const auto found = seals_.find(lease);
    if (found != seals_.end()) return found->second;
    std::shared_ptr<LeaseSeal> seal = TRY(LeaseSeal::create(lease, layout_));
    seals_.emplace(lease, seal);
    return seal;
  }

  /// Null when the lease has none.
  std::shared_ptr<LeaseSeal> find(LeaseId lease) {
    const std::scoped_lock lock(mutex_);
    const auto found = seals_.find(lease);
    return found == seals_.end() ? nullptr : found->second;
  }

  /// What the lease spilled is noise from here on, also for jobs that hold the seal.
  void forget(LeaseId lease) {
    const auto forgotten = [&] {
      const std::scoped_lock lock(mutex_);
      return seals_.extract(lease);
    }();
    if (forgotten) forgotten.mapped()->forget();
  }

 private:
  std::uint64_t layout_;
  std::mutex mutex_;
  std::map<LeaseId, std::shared_ptr<LeaseSeal>> seals_;
};

}  // namespace leasehold
