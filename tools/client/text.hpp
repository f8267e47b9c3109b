/// Passes one text from a session's thread, which receives it, to the caller, which reads it.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "ipc/client/session_event.hpp"
#include "tools/client/include/leasehold/client.hpp"

namespace leasehold::api {

Error to_api(const leasehold::Error& error);

/// Lifetime: shared by the stream and the session. Threads: any.
class Text {
 public:
  explicit Text(std::string request_id) : request_id_(std::move(request_id)) {}

  const std::string& request_id() const { return request_id_; }

  /// Takes an event of the session; wakes the reader for a token or the end.
  void take(const client::SessionEvent& event);

  /// Implement Stream::next() and Stream::result().
  std::optional<Token> next();
  Result<Completed> result();
  /// Implements Session::embed().
  Result<std::vector<float>> embedding();
  bool has_ended() const;

 private:
  void note_lease(LeaseId lease);
  void end(const client::Ended& ended);

  const std::string request_id_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Token> unread_;
  Completed completed_;
  std::string embedding_;  ///< As in wire::RequestCompleted.
  std::optional<Result<Completed>> ended_;
};

}  // namespace leasehold::api
