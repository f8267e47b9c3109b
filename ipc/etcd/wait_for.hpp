/// Runs an event loop until one call of a Client is done, for callers that have nothing else to do.
///
/// Threads: the loop's own. The loop must have no other work, because `wait_for` runs it until it
/// has none left.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <optional>
#include <utility>

#include "common/result.hpp"

namespace leasehold::etcd {

/// Returns the call's result, or throws what the call threw.
template <class T>
Result<T> wait_for(boost::asio::io_context& io, boost::asio::awaitable<Result<T>> call) {
  std::optional<Result<T>> result;
  boost::asio::co_spawn(io, std::move(call), [&](const std::exception_ptr& error, Result<T> done) {
    if (error) std::rethrow_exception(error);
    result = std::move(done);
  });
  io.restart();
  io.run();
  return *std::move(result);
}

}  // namespace leasehold::etcd
