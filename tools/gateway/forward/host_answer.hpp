/// Takes the answer of one host to a client.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/forward/host_watch.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

inline constexpr int kOk = 200;
inline constexpr int kNotFound = 404;

/// Counts a request as one that runs on a host while this object exists.
class RunningOn {
 public:
  RunningOn(HostTable& table, HostId host) : table_(table), host_(host) { table_.started(host_); }
  ~RunningOn() { table_.ended(host_); }
  RunningOn(const RunningOn&) = delete;
  RunningOn& operator=(const RunningOn&) = delete;

 private:
  HostTable& table_;
  HostId host_;
};

/// An answer that has begun, and its host.
struct HostAnswer {
  HostId host;
  HostExchange exchange;
  bool says_continue = false;        ///< Adds `Leasehold-Continue: no`.
  bool is_resumable = false;         ///< The client can come back with Last-Event-ID.
  const HostWatch* watch = nullptr;  ///< The watch of the exchange, if it has one.
};

/// An answer that was read to its end.
struct WholeAnswer {
  int status = 0;
  Fields fields;
  std::string body;
};

/// What an answer that is read whole may take.
struct AnswerLimits {
  std::chrono::seconds timeout;
  std::size_t max_bytes = 0;
};

/// The text of the client's request for this host.
std::string request_to(Shared& shared, const ClientExchange& client, HostId host,
                       std::string_view body);

/// Sends the client's request with this body. `watch` is that of the request at this host. Errors:
/// those of HostLink::exchange.
boost::asio::awaitable<Result<HostExchange>> begin_exchange(Shared& shared,
                                                            const ClientExchange& client,
                                                            const HostWatch& watch,
                                                            std::string_view body);

/// Passes an answer back, piece by piece: a client that reads slowly slows the host down. Then
/// keeps the host's connection if it can serve again. A stream of events whose host is lost ends
/// with an error event; another answer ends with the connection.
boost::asio::awaitable<void> pass_answer(Shared& shared, ClientExchange& client, HostAnswer answer);

/// Reads the rest of an answer, and keeps its connection. Errors: those of
/// HostConnection::read_whole_body.
boost::asio::awaitable<Result<WholeAnswer>> read_whole_answer(Shared& shared, HostId host,
                                                              HostExchange exchange,
                                                              AnswerLimits limits);
/// Passes such an answer back. Returns false if the client is gone.
boost::asio::awaitable<bool> pass_whole(Shared& shared, ClientExchange& client, WholeAnswer answer);

/// Learns from the status of an answer whether the client's key is valid; a wrong key ends the
/// connection.
void note_key(Shared& shared, ClientExchange& client, int status);
/// Logs, once for each host and key, that the host lacks a key which another host has accepted.
void note_missing_key(Shared& shared, const ClientExchange& client, HostId host);

/// The code of the answer for a model that no host serves, as OpenAI's API names it.
inline constexpr std::string_view kModelNotFound = "model_not_found";

/// The answer when no host can serve a request: 404 for what none has, else 503.
http::Answer no_host_answer(const ClientExchange& client, const Error& error);

}  // namespace leasehold::gateway
