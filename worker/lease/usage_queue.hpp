/// Usage records that the broker has not confirmed yet. One report with the oldest records is in
/// flight at a time, and is repeated until it is confirmed.
///
///   push ─► waiting ─ take ─► in flight ─ confirmed ─► gone
///                ▲                │
///                └──── failed ────┘
///
/// Bounded: beyond kMaxKept the oldest record of the tenant with the most records is dropped, so
/// that a tenant whose requests end often displaces only its own records. Pure. Threads: one.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <optional>
#include <utility>

#include "common/fair_shares.hpp"
#include "ipc/control/messages_audit.hpp"

namespace leasehold {

class UsageQueue {
 public:
  static constexpr std::size_t kMaxKept = 16'384;

  /// Assigns the record its number and queues it.
  void push(wire::UsageRecord record) {
    record.number = ++newest_;
    kept_.take(record.tenant);
    waiting_.push_back(std::move(record));
    if (waiting_.size() <= kMaxKept) return;
    const TenantId most = kept_.largest();
    waiting_.erase(std::ranges::find(waiting_, most, &wire::UsageRecord::tenant));
    kept_.give_back(most);
    ++dropped_;
  }

  /// The next report; nothing while one is in flight or no record waits.
  std::optional<wire::UsageReport> take() {
    if (in_flight_ > 0 || waiting_.empty()) return std::nullopt;
    wire::UsageReport report;
    const std::size_t count = std::min(waiting_.size(), wire::UsageReport::kMaxRecords);
    report.records.assign(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(count));
    in_flight_ = report.records.back().number;
    return report;
  }
  /// Removes the records of the report in flight: they are in the broker's journal, or will never
  /// be accepted.
  void confirmed() {
    const std::uint64_t last = std::exchange(in_flight_, 0);
    while (!waiting_.empty() && waiting_.front().number <= last) {
      kept_.give_back(waiting_.front().tenant);
      waiting_.pop_front();
    }
  }
  /// The report in flight has to be repeated.
  void failed() { in_flight_ = 0; }

  bool empty() const { return waiting_.empty(); }
  /// Records dropped since the last call.
  std::uint64_t take_dropped() { return std::exchange(dropped_, 0); }

 private:
  std::deque<wire::UsageRecord> waiting_;  // includes the records in flight
  FairShares<TenantId> kept_{kMaxKept};
  std::uint64_t newest_ = 0;
  std::uint64_t in_flight_ = 0;  // last record number of the report in flight; 0: none
  std::uint64_t dropped_ = 0;
};

}  // namespace leasehold
