/// Requests about something that one host has: a file, a batch, or a request that runs.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

struct Held {
  std::string body;
  /// It is kept on a disk: while a host does not answer, nothing shows that it does not exist.
  bool is_kept = false;
};

/// Asks the hosts one after another until one answers otherwise than with 404, and passes that
/// answer back. The first one is where uploads of this key go.
boost::asio::awaitable<void> answer_on_holder(Shared& shared, ClientExchange& client, Held request);

/// Where uploads of the client's key go, as long as the same hosts are ready.
std::uint64_t files_digest(const ClientExchange& client);

}  // namespace leasehold::gateway
