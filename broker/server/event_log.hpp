/// The newest events, numbered. Bounded: a new event evicts the oldest. Threads: one.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
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

  /// Also writes every later event to this file. After the first failed write the file is closed,
  /// and `take_file_error` returns the error once.
  void append_to_file(events::EventFile file) { file_.emplace(std::move(file)); }
  std::optional<Error> take_file_error() { return std::exchange(file_error_, std::nullopt); }

  void append(events::Event event, TimePoint at);

  /// Up to `limit` events with a sequence above `after`, oldest first.
  std::vector<NumberedEvent> after(std::uint64_t after, std::size_t limit) const;

  /// Sequence numbers of the first and the last stored event; newest = oldest - 1 when empty.
  std::uint64_t oldest() const { return next_ - events_.size(); }
  std::uint64_t newest() const { return next_ - 1; }

 private:
  std::size_t capacity_;
  std::uint64_t next_ = 1;
  std::deque<NumberedEvent> events_;
  std::optional<events::EventFile> file_;
  std::optional<Error> file_error_;
};

}  // namespace leasehold
