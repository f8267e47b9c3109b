/// The newest events, numbered. Bounded: beyond the capacity the tenant with the most events loses
/// its oldest, so that a busy tenant costs no other tenant its events. Threads: one.
///
/// The owner of an event is its tenant, or the tenant last named with its lease, or the broker.
/// Sampled steps, which workers report, count together as one more owner.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ipc/control/event_file.hpp"

namespace leasehold {

struct NumberedEvent {
  std::uint64_t sequence = 0;  ///< 1 is the first event of this broker.
  events::StampedEvent stamped;
};

class EventLog {
 public:
  static constexpr std::size_t kCapacity = 65'536;

  explicit EventLog(std::size_t capacity = kCapacity) : capacity_(capacity) {}

  /// Also writes every later event to this file.
  void append_to_file(events::EventFile file) { file_.emplace(std::move(file)); }

  /// The result is the file's (events::EventFile::append), 0 without one. The event is in the log
  /// in any case.
  Result<std::uint64_t> append(events::Event event, TimePoint at);

  /// Up to `limit` events with a sequence above `after`, oldest first. Sequences of lost events are
  /// left out.
  std::vector<NumberedEvent> after(std::uint64_t after, std::size_t limit) const;

  /// The sequence of the last event; 0 before the first.
  std::uint64_t newest() const { return newest_; }

  /// Revocations since the broker started, by RevokeReason.
  const std::array<std::uint64_t, kRevokeReasonCount>& revocations() const { return revocations_; }

 private:
  struct KnownLease {
    std::string tenant;
    std::size_t events = 0;  // of this lease in the log
  };
  using Leases = std::unordered_map<std::string, KnownLease>;
  struct Entry {
    events::StampedEvent stamped;
    Leases::value_type* lease = nullptr;  // null: it names none
  };

  Leases::value_type* lease_of(const events::Event& event);
  static std::string owner_of(const events::Event& event, Leases::value_type* lease);
  void add_to_owner(std::string owner, std::uint64_t sequence);
  void evict();

  std::size_t capacity_;
  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kRevokeReasonCount> revocations_{};
  std::map<std::uint64_t, Entry> events_;                      // by sequence
  std::map<std::string, std::deque<std::uint64_t>> of_owner_;  // sequences; no deque is empty
  std::set<std::pair<std::size_t, std::string_view>> owners_by_count_;  // keys of of_owner_
  Leases leases_;                                                       // those named in the log
  std::optional<events::EventFile> file_;
};

}  // namespace leasehold
