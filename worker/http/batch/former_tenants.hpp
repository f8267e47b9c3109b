/// Removes the files and batches of tenants that were removed, also if a tenant of the same name
/// was admitted since.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>

#include "worker/batch/batch_store.hpp"
#include "worker/http/http_shared.hpp"

namespace leasehold::http {

/// Asks the broker about the owners of all files. While it does not answer, nothing is removed; a
/// worker that was down asks when it starts. The store outlives the coroutine.
boost::asio::awaitable<void> remove_former_tenants(std::shared_ptr<Shared> shared,
                                                   batch::BatchStore& store);

}  // namespace leasehold::http
