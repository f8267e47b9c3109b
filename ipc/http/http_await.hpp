/// How the coroutines of the HTTP servers wait.
#pragma once

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>

namespace leasehold::http {

/// Errors are values in coroutines.
inline constexpr auto kAwait = boost::asio::as_tuple(boost::asio::use_awaitable);

}  // namespace leasehold::http
