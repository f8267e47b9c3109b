/// Serves one text: carries out what TextContinuation decides, between the client and the hosts.
///
/// The client's connection writes; each exchange with a host has a coroutine of its own that reads.
/// A host is read only while few bytes wait for the client, so that a slow client slows its host
/// down. A stream that is silent for 15 s sends the client a comment.
///
/// Lifetime: shared with the coroutines of its exchanges, which end by themselves. Threads: one.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <string>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/decide/request_body.hpp"
#include "tools/gateway/decide/text_continuation.hpp"
#include "tools/gateway/forward/refusal.hpp"
#include "tools/gateway/shared.hpp"
#include "tools/gateway/signal.hpp"

namespace leasehold::gateway {

/// A request that generates, as the client sent it.
struct TextRequest {
  std::string body;
  BodyFacts facts;
  TenantId owner;
};

class TextRelay : public std::enable_shared_from_this<TextRelay> {
 public:
  TextRelay(std::shared_ptr<Shared> shared, ClientExchange& client, TextRequest request);

  /// Serves the request to its end, or until the client is gone.
  boost::asio::awaitable<void> run();

 private:
  /// One exchange with a host.
  struct Attempt {
    HostId host;
    std::shared_ptr<HostConnection> connection;  // null until it is connected
    bool is_closed = false;
    bool is_finished = false;  // its stream ended regularly
    std::shared_ptr<Signal> may_read;
  };

  /// What each host receives, so that all make the same answer.
  struct Origin {
    std::int64_t created_unix_s = 0;
    std::string request_id;
  };

  void pass(const TextEvent& event);
  void perform(OpenHost action);
  void perform(const CloseHost& action);
  void perform(Forward action);
  void perform(Finish action);
  void perform(const PassAnswer& action);
  void perform(FailRequest action);

  boost::asio::awaitable<void> serve(AttemptId id, std::shared_ptr<Attempt> attempt,
                                     std::string request);
  boost::asio::awaitable<void> note_refusal(AttemptId id, HostId host, HostExchange exchange);
  boost::asio::awaitable<void> read_stream(AttemptId id, std::shared_ptr<Attempt> attempt);
  boost::asio::awaitable<void> finish_exchange(std::shared_ptr<Attempt> attempt);
  std::string request_for(const OpenHost& action) const;
  void log_other_arithmetic(const Attempt& attempt, const std::string& identity) const;

  void leave();
  boost::asio::awaitable<bool> begin_events();
  boost::asio::awaitable<bool> write_waiting();
  boost::asio::awaitable<void> await_change();
  boost::asio::awaitable<void> send_end();
  boost::asio::awaitable<void> send_finish(Finish finish);
  boost::asio::awaitable<void> send_refusal();
  /// The code of an error in the answer, in the log and in the metrics.
  std::string_view code_of(const Error& error) const;
  /// The answer for a client that has received nothing.
  http::Answer answer_of(const FailRequest& failed) const;
  boost::asio::awaitable<void> send_failure(FailRequest failed);
  void close_attempts();

  std::shared_ptr<Shared> shared_;
  ClientExchange* client_;  // null once `run` has ended
  TextRequest request_;
  TextContinuation continuation_;
  Origin origin_;
  std::map<AttemptId, std::shared_ptr<Attempt>> attempts_;
  Signal changed_;
  TextActions actions_;  // empty; keeps its memory from one event to the next
  std::string waiting_;  // bytes for the client
  ShareOf unread_;
  Fields stream_fields_;  // of the first host that accepted
  std::optional<Refusal> refusal_;
  std::optional<TextAction> end_;  // Finish, PassAnswer or FailRequest
  TimePoint heartbeat_at_;
  TimePoint no_timer_before_;
};

}  // namespace leasehold::gateway
