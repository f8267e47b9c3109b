/// Holds the seal of each lease that spilled a block. A seal is created when it is first needed,
/// and its key is erased at the fence.
///
/// Threads: any. A job of an ending lease may create a seal after `forget`; the next `forget`
/// erases it, which the engine calls when it drops the lease.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "worker/kv/sealed_blocks.hpp"

namespace leasehold {

class LeaseSeals {
 public:
  explicit LeaseSeals(std::uint64_t layout) : layout_(layout) {}

  /// Errors: those of LeaseSeal::create.
  Result<std::shared_ptr<LeaseSeal>> of(LeaseId lease) {
    const std::scoped_lock lock(mutex_);
    const auto found = seals_.find(lease);
    if (found != seals_.end()) return found->second;
    std::shared_ptr<LeaseSeal> seal = TRY(LeaseSeal::create(lease, layout_));
    seals_.emplace(lease, seal);
    return seal;
  }

  /// Null when the lease has no seal.
  std::shared_ptr<LeaseSeal> find(LeaseId lease) {
    const std::scoped_lock lock(mutex_);
    const auto found = seals_.find(lease);
    return found == seals_.end() ? nullptr : found->second;
  }

  /// Erases the lease's key: its spilled blocks can no longer be decrypted, even by jobs that hold
  /// the seal.
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
