/// Counts the bytes that connections hold in this process, for each owner of connections and for
/// all owners together. The owners share a bound (common/fair_shares.hpp).
///
/// Threads: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "common/fair_shares.hpp"

namespace leasehold::control {

struct QueueMeter {
  std::size_t queued_bytes = 0;
  std::shared_ptr<QueueMeter> total;  ///< A meter that counts the same bytes, too, or null.
};

/// The bytes that one queue holds. While a meter is set, it counts them.
class QueueCharge {
 public:
  QueueCharge() = default;
  QueueCharge(const QueueCharge&) = delete;
  QueueCharge& operator=(const QueueCharge&) = delete;
  ~QueueCharge() { set(0); }

  std::size_t bytes() const { return bytes_; }
  bool has_meter() const { return meter_ != nullptr; }
  void set(std::size_t bytes) {
    for (QueueMeter* meter = meter_.get(); meter != nullptr; meter = meter->total.get()) {
      meter->queued_bytes -= bytes_;
      meter->queued_bytes += bytes;
    }
    bytes_ = bytes;
  }
  /// From now on `meter` counts the bytes; null: no meter does.
  void set_meter(std::shared_ptr<QueueMeter> meter) {
    const std::size_t bytes = bytes_;
    set(0);
    meter_ = std::move(meter);
    set(bytes);
  }

 private:
  std::size_t bytes_ = 0;
  std::shared_ptr<QueueMeter> meter_;
};

/// The meters of all owners, and how much each may hold.
template <class Owner>
class QueueShares {
 public:
  explicit QueueShares(std::size_t capacity_bytes) : capacity_bytes_(capacity_bytes) {}

  /// The meter that all peers of the owner share.
  std::shared_ptr<QueueMeter> meter_of(const Owner& owner) {
    auto& meter = by_owner_[owner];
    if (!meter) meter = std::make_shared<QueueMeter>(0, total_);
    return meter;
  }

  ResourceShare owner_share(const Owner& owner) const {
    const auto found = by_owner_.find(owner);
    return {.held = found == by_owner_.end() ? 0 : found->second->queued_bytes,
            .taken = total_->queued_bytes,
            .capacity = capacity_bytes_};
  }

  /// The owner that holds the most, if that is more than its share.
  std::optional<Owner> largest_over_share() const {
    const auto largest = std::ranges::max_element(
        by_owner_, {}, [](const auto& entry) { return entry.second->queued_bytes; });
    if (largest == by_owner_.end() || may_take_more(owner_share(largest->first)))
      return std::nullopt;
    return largest->first;
  }

 private:
  std::size_t capacity_bytes_;
  std::shared_ptr<QueueMeter> total_ = std::make_shared<QueueMeter>();
  /// Never shrinks: a machine has few users, and the broker admits tenants.
  std::map<Owner, std::shared_ptr<QueueMeter>> by_owner_;
};

}  // namespace leasehold::control
