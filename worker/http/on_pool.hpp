/// Lets a coroutine of the HTTP server wait for work on the pool.
///
/// Threads: the one that runs the server's `io`.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <utility>

#include "ipc/http/async_value.hpp"
#include "worker/http/http_shared.hpp"

namespace leasehold::http {

/// Runs work of a tenant on the pool. Returns nothing if the server stops meanwhile. Name the work
/// before the co_await: GCC 12 destroys braced temporaries in such an expression twice.
template <class T>
boost::asio::awaitable<std::optional<T>> on_pool(Shared& shared, TenantId tenant,
                                                 std::move_only_function<T()> work) {
  AsyncValue<T> made(*shared.deps.io);
  shared.pool.run(tenant,
                  [work = std::move(work), give = made.giver()]() mutable { give(work()); });
  co_return co_await made.take();
}

}  // namespace leasehold::http
