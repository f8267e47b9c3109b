/// Answers that are put together from those of several hosts.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

/// An answer of a host that was read to its end.
struct WholeAnswer {
  int status = 0;
  Fields fields;
  std::string body;
};

/// Asks hosts until their lists cover every model that hosts report, and answers with the entries
/// of all, each id once.
boost::asio::awaitable<void> answer_models(Shared& shared, ClientExchange& client);

/// Asks every host, and answers with the entries of all.
boost::asio::awaitable<void> answer_requests(Shared& shared, ClientExchange& client);

/// Asks the hosts one after another until one knows the request.
boost::asio::awaitable<void> answer_cancel(Shared& shared, ClientExchange& client);

}  // namespace leasehold::gateway
