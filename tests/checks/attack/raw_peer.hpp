/// One connection of an attacker. It ignores the limits of the protocol, and sends without waiting
/// for replies.
///
/// Threads: one. Lifetime: the outcome outlives the connection.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/machine/unique_fd.hpp"
#include "tests/checks/attack/outcome.hpp"

namespace leasehold::attack {

/// A text that many connections send.
using SharedText = std::shared_ptr<const std::string>;

inline SharedText shared_text(std::string text) {
  return std::make_shared<const std::string>(std::move(text));
}

class RawPeer {
 public:
  /// A refused connection is counted and stays closed.
  RawPeer(const std::string& path, Outcome& outcome);

  bool is_open() const { return static_cast<bool>(fd_); }
  int fd() const { return fd_.get(); }
  void queue(SharedText text) { unsent_.push_back(std::move(text)); }
  void queue(std::string text) { queue(shared_text(std::move(text))); }
  bool has_unsent() const { return is_open() && !unsent_.empty(); }

  /// Sends until the socket is full.
  void write();
  /// Reads and counts what has arrived; keeps the last line that is not a token.
  void read();
  /// Removes the last line that `read` kept, and returns it.
  std::optional<std::string> read_line();
  void close() { fd_.reset(); }

 private:
  void end();

  UniqueFd fd_;
  Outcome* outcome_;
  std::deque<SharedText> unsent_;
  std::size_t sent_ = 0;  ///< Bytes of the first unsent text that were sent.
  std::string received_;  ///< The incomplete line at the end of the input.
  std::optional<std::string> line_;
};

enum class Replies { Read, Ignore };

/// Sends and receives on all connections until `until`, or until every connection is closed. With
/// Replies::Ignore also ends when every connection has sent everything.
void pump(std::vector<RawPeer>& peers, Replies replies, TimePoint until);

/// Sends the line and waits for one line. Nothing when the time ends or the connection closes.
std::optional<wire::Json> call(RawPeer& peer, std::string line, TimePoint until);

/// Waits without reading.
void sleep_until(TimePoint until);

}  // namespace leasehold::attack
