/// Bytes and descriptors as they arrive, cut into lines with the descriptors that belong to each.
///
/// Linux never merges bytes across the end of a message that carries descriptors: a recvmsg(2) that
/// delivers some ends, at the latest, with that message's bytes. So the last byte of such a recvmsg
/// lies in the line that owns them, whatever plain lines were delivered before it. Descriptors that
/// are never claimed are closed with the Inbox.
/// Source: unix(7), and net/unix/af_unix.c of Linux, unix_stream_read_generic.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/unique_fd.hpp"
#include "ipc/control/peer.hpp"

namespace leasehold::control {

struct Line {
  std::string text;  ///< Without the newline.
  std::vector<UniqueFd> fds;
};

class Inbox {
 public:
  explicit Inbox(const Limits& limits) : limits_(limits) {}

  /// How many descriptors one message may carry from now on.
  void set_max_fds(std::size_t at_most) { limits_.max_fds = at_most; }

  /// What one recvmsg delivered; `bytes` is not empty.
  void add(std::string_view bytes, std::vector<UniqueFd> fds);

  /// The next whole line, or nothing yet. MessageTooLarge when a line grows past the limit,
  /// MalformedMessage when more descriptors wait than one message may carry: the stream is lost.
  Result<std::optional<Line>> next();

 private:
  struct Arrival {
    std::uint64_t last_byte;  ///< Offset in the stream.
    std::vector<UniqueFd> fds;
  };
  std::vector<UniqueFd> claim_before(std::uint64_t end);
  Result<std::optional<Line>> wait_for_more();
  std::size_t waiting_fds() const;

  Limits limits_;
  std::string bytes_;            ///< Arrived; those before begin_ are taken already.
  std::size_t begin_ = 0;        ///< Of the line that comes next.
  std::size_t searched_ = 0;     ///< No newline from begin_ to here.
  std::uint64_t dropped_ = 0;    ///< Offset of bytes_[0] in the stream.
  std::deque<Arrival> arrived_;  ///< In order of last_byte.
};

}  // namespace leasehold::control
