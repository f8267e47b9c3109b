/// The newest events, numbered. Bounded: beyond the capacity the tenant with the most events loses
/// its oldest, so that a busy tenant costs no other tenant its events. Threads: one.
///
/// The owner of an event is its tenant, or the tenant last named with its lease, or the broker.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/fair_shares.hpp"
#include "ipc/control/event_file.hpp"

namespace leasehold {

struct NumberedEvent {
  std::uint64_t sequence = 0;  ///< 1 is the first event of this broker.
  events::StampedEvent stamped;
};

class EventLog {
 public:
  static constexpr std::size_t kCapacity = 65'536;

  explicit EventLog(std::size_t capacity = kCapacity) : kept_(capacity) {}

  /// Also writes every later event to this file. After the first failed write the file is closed,
  /// and `take_file_error` returns the error once.
  void append_to_file(events::EventFile file) { file_.emplace(std::move(file)); }
  std::optional<Error> take_file_error() { return std::exchange(file_error_, std::nullopt); }

  void append(events::Event event, TimePoint at);

  /// Up to `limit` events with a sequence above `after`, oldest first. Sequences of lost events are
  /// left out.
  std::vector<NumberedEvent> after(std::uint64_t after, std::size_t limit) const;

  /// The sequence of the last event; 0 before the first.
  std::uint64_t newest() const { return newest_; }

 private:
  struct Entry {
    events::StampedEvent stamped;
    std::string lease;  // empty for an event without one
    std::string tenant;
  };
  struct KnownLease {
    std::string tenant;
    std::size_t events = 0;  // of this lease in the log
  };

  std::string owner_of(const events::Event& event, const std::string& lease);
  void evict();

  FairShares<std::string> kept_;  // events by tenant
  std::uint64_t newest_ = 0;
  std::map<std::uint64_t, Entry> events_;                       // by sequence
  std::map<std::string, std::deque<std::uint64_t>> of_tenant_;  // sequences; no deque is empty
  std::map<std::string, KnownLease> leases_;                    // those named in the log
  std::optional<events::EventFile> file_;
  std::optional<Error> file_error_;
};

}  // namespace leasehold
