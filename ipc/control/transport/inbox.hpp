/// Cuts arriving bytes into lines, each with the descriptors that belong to it.
///
/// Linux never merges bytes across the end of a message that carries descriptors: a recvmsg(2) that
/// delivers descriptors ends with the bytes of their message at the latest. So the last byte of
/// such a recvmsg belongs to the line that owns the descriptors, even when it delivered other lines
/// too. The destructor closes unclaimed descriptors. Source: unix(7), and net/unix/af_unix.c of
/// Linux, unix_stream_read_generic.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "ipc/control/transport/peer.hpp"

namespace leasehold::control {

struct Line {
  std::string text;  ///< The line without its newline.
  std::vector<UniqueFd> fds;
};

class Inbox {
 public:
  explicit Inbox(const Limits& limits) : limits_(limits) {}

  const Limits& limits() const { return limits_; }
  /// The new limits also apply to a line that has partly arrived.
  void set_limits(const Limits& limits) { limits_ = limits; }

  /// Takes the result of one recvmsg; `bytes` is not empty.
  void add(std::string_view bytes, std::vector<UniqueFd> fds);

  /// Memory held for bytes that have arrived and were not taken; 0 after all lines were taken.
  std::size_t held_bytes() const { return bytes_.empty() ? 0 : bytes_.capacity(); }

  /// From now on `meter` counts the charged bytes; null: no meter does.
  void set_meter(std::shared_ptr<QueueMeter> meter) { charge_.set_meter(std::move(meter)); }
  /// Charges the bytes held, and those of a line that was taken and waits. Returns true if a meter
  /// counts any.
  bool charge(std::size_t waiting_line_bytes) {
    charge_.set(held_bytes() + waiting_line_bytes);
    return charge_.bytes() != 0 && charge_.has_meter();
  }

  /// Drops everything that has arrived. No more is added afterwards.
  void clear();

  /// The bytes of the next line that have arrived.
  std::string_view partial_line() const { return std::string_view(bytes_).substr(begin_); }

  /// The next whole line, or nothing if none has arrived. Errors: MessageTooLarge when a line
  /// exceeds the limit; MalformedMessage when more descriptors wait than one message may carry.
  /// The stream is unusable after an error.
  Result<std::optional<Line>> next();

 private:
  struct Arrival {
    std::uint64_t last_byte;  ///< Offset in the stream.
    std::vector<UniqueFd> fds;
  };
  std::vector<UniqueFd> claim_before(std::uint64_t end);
  Result<std::optional<Line>> wait_for_more();
  std::string take_text(std::size_t newline);
  std::size_t waiting_fds() const;

  Limits limits_;
  std::string bytes_;            ///< Arrived bytes; those before begin_ are consumed.
  std::size_t begin_ = 0;        ///< Start of the next line.
  std::size_t searched_ = 0;     ///< There is no newline between begin_ and here.
  std::uint64_t dropped_ = 0;    ///< Offset of bytes_[0] in the stream.
  std::deque<Arrival> arrived_;  ///< In order of last_byte.
  QueueCharge charge_;
};

}  // namespace leasehold::control
