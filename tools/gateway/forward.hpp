/// Answers requests that generate nothing, or whose text cannot continue elsewhere, with what hosts
/// answer.
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
  bool is_on_one_host = false;  ///< A host that answers 404 is followed by the next one.
};

/// Passes the request to one host and its answer back, piece by piece. A host that cannot be
/// connected to is replaced by another one.
boost::asio::awaitable<void> forward(Shared& shared, ClientExchange& client, Forwarded request);

/// The text of the client's request for this host.
std::string request_to(Shared& shared, const ClientExchange& client, HostId host,
                       std::string_view body);

}  // namespace leasehold::gateway
