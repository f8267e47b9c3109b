/// Answers requests that generate nothing, or whose text cannot continue elsewhere, with what hosts
/// answer.
///
/// A request is sent to a second host if no host has seen it. A request that stores nothing is also
/// sent again when its host dies or falls silent before the answer, or refuses it with an error
/// that another host may not give (decide/error_outcome.hpp).
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

/// A request and the host that it goes to.
struct Forwarded {
  std::string body;
  std::string model = {};       ///< Empty: any host will do.
  std::uint64_t placement = 0;  ///< placement_digest.
  bool says_continue = false;   ///< The answer has `Leasehold-Continue: no`.
  bool is_resumable = false;    ///< The client can come back with Last-Event-ID.
};

/// Passes the request to one host and its answer back, piece by piece. At most Options::moves hosts
/// may die or fall silent with it, because the request may be the reason. The last refusal is the
/// answer if no other host is left.
boost::asio::awaitable<void> forward(Shared& shared, ClientExchange& client, Forwarded request);

}  // namespace leasehold::gateway
