/// Sends one HTTP/1.1 request on a new connection and reads the answer.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/beast/http/verb.hpp>
#include <chrono>
#include <string>

#include "common/result.hpp"
#include "ipc/http/http_url.hpp"
#include "ipc/http/name_lookup.hpp"

namespace leasehold::http {

struct ExchangeLimits {
  std::chrono::milliseconds timeout{5'000};  ///< From the name lookup to the last byte.
  std::size_t max_answer_bytes = 1 << 20;
};

struct OutgoingRequest {
  boost::beast::http::verb verb = boost::beast::http::verb::get;
  std::string target;
  std::string body;  ///< JSON; empty: none.
};

/// Returns the body of an answer with status 200. Errors: UnknownMethod (404, 405, 501),
/// ConnectionRefused (no connection, any other status), ConnectionLost, TimedOut, MessageTooLarge,
/// MalformedMessage (not HTTP).
boost::asio::awaitable<Result<std::string>> exchange(NameLookup& names, const Url& url,
                                                     OutgoingRequest request,
                                                     ExchangeLimits limits);

}  // namespace leasehold::http
