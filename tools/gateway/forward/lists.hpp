/// Answers that are put together from those of several hosts.
///
/// A list has the header `Leasehold-Missing-Hosts: N` if N hosts did not answer.
///
/// Threads: one.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "tools/gateway/client_exchange.hpp"
#include "tools/gateway/shared.hpp"

namespace leasehold::gateway {

/// Asks hosts until their lists cover every model that hosts report, and answers with the entries
/// of all, each id once.
boost::asio::awaitable<void> answer_models(Shared& shared, ClientExchange& client);

/// Asks every host, and answers with a page of the entries of all: requests by their id, each with
/// its host.
boost::asio::awaitable<void> answer_requests(Shared& shared, ClientExchange& client);

/// Asks every host that keeps files, and answers with a page of the files or batches of all, the
/// newest first. The fields `after`, `limit`, `order` and `purpose` of the query are those of
/// hosts.
boost::asio::awaitable<void> answer_files(Shared& shared, ClientExchange& client);

}  // namespace leasehold::gateway
