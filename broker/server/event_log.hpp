/// The newest events, numbered. Beyond the capacity, the owner with the most events loses its
/// oldest one, so that a busy tenant does not displace the events of others. Threads: one.
///
/// The owner of an event is the tenant that it names, or the tenant last named together with its
/// lease, or else the broker. The sampled steps of all workers have one common owner.
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

  /// Writes every event to `file`, too, if there is one.
  explicit EventLog(std::size_t capacity = kCapacity,
                    std::optional<events::EventFile> file = std::nullopt)
      : capacity_(capacity), file_(std::move(file)) {}

  /// Adds an event to the log and the file. The result is that of events::EventFile::append; 0
  /// without a file. After an error the event is still in the log.
  Result<std::uint64_t> append(events::Event event, TimePoint at);

  /// Up to `limit` events with a sequence above `after`, oldest first. Evicted events are missing
  /// from the sequence.
  std::vector<NumberedEvent> after(std::uint64_t after, std::size_t limit) const;

  /// The sequence of the last event; 0 before the first.
  std::uint64_t newest() const { return newest_; }

  /// Revocations since the broker started, by RevokeReason.
  const std::array<std::uint64_t, kRevokeReasonCount>& revocations() const { return revocations_; }
  /// Adapters that were loaded, and those that left, since the broker started.
  std::uint64_t adapter_loads() const { return adapter_loads_; }
  std::uint64_t adapter_evictions() const { return adapter_evictions_; }

 private:
  struct KnownLease {
    std::string tenant;
    std::size_t events = 0;  // number of events in the log that name this lease
  };
  using Leases = std::unordered_map<std::string, KnownLease>;
  struct Entry {
    events::StampedEvent stamped;
    Leases::value_type* lease = nullptr;  // null: the event names no lease
  };

  Leases::value_type* lease_of(const events::Event& event);
  static std::string owner_of(const events::Event& event, Leases::value_type* lease);
  void add_to_owner(std::string owner, std::uint64_t sequence);
  void evict();

  std::size_t capacity_;
  std::uint64_t newest_ = 0;
  std::array<std::uint64_t, kRevokeReasonCount> revocations_{};
  std::uint64_t adapter_loads_ = 0;
  std::uint64_t adapter_evictions_ = 0;
  std::map<std::uint64_t, Entry> events_;                      // keyed by sequence
  std::map<std::string, std::deque<std::uint64_t>> of_owner_;  // sequences; no deque is empty
  std::set<std::pair<std::size_t, std::string_view>> owners_by_count_;  // keys of of_owner_
  Leases leases_;  // leases that events in the log name
  std::optional<events::EventFile> file_;
};

}  // namespace leasehold
