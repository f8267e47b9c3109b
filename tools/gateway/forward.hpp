/// Answers requests that generate nothing, or whose text cannot continue elsewhere, with what hosts
/// answer.
///
/// A request is sent to a second host only if no host has seen it, or if the first one answered
/// that it does not have what the request names. A request that stores nothing is also sent again
/// when its host died before the answer.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <string>
#include <string_view>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

/// A request and the host that it goes to.
struct Forwarded {
  std::string body;
  std::string model = {};       ///< Empty: any host will do.
  std::uint64_t placement = 0;  ///< placement_digest.
  bool says_continue = false;   ///< The answer has `Leasehold-Continue: no`.
};

/// Passes the request to one host and its answer back, piece by piece. A host that cannot be
/// connected to is replaced by another one, and so is one that ends the connection before it
/// answers a request that is_repeatable. At most Options::moves hosts may do that, because the
/// request may be the reason.
boost::asio::awaitable<void> forward(Shared& shared, ClientExchange& client, Forwarded request);

/// A request about something that one host has: a file, a batch, or a request that runs.
struct Held {
  std::string body;
  /// It is kept on a disk: while a host does not answer, nothing shows that it does not exist.
  bool is_kept = false;
};

/// Asks the hosts one after another until one answers otherwise than with 404, and passes that
/// answer back. The first one is where uploads of this key go.
boost::asio::awaitable<void> answer_on_holder(Shared& shared, ClientExchange& client, Held request);

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
  bool says_continue = false;
};

/// Passes an answer back, piece by piece: a client that reads slowly slows the host down. Then
/// keeps the host's connection if it can serve again.
boost::asio::awaitable<void> pass_answer(Shared& shared, ClientExchange& client, HostAnswer answer);

/// Learns from the status of an answer whether the client's key is valid; a wrong key ends the
/// connection.
void note_key(Shared& shared, ClientExchange& client, int status);

/// Where uploads of the client's key go, as long as the same hosts are ready.
std::uint64_t files_digest(const ClientExchange& client);

/// The answer when no host can serve a request: 404 for what none has, else 503.
http::Answer no_host_answer(const ClientExchange& client, const Error& error);

/// The text of the client's request for this host.
std::string request_to(Shared& shared, const ClientExchange& client, HostId host,
                       std::string_view body);

}  // namespace leasehold::gateway
