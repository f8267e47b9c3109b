/// The handlers of the HTTP paths, for a caller with a valid key.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "worker/http/http_stream.hpp"
#include "worker/http/key_check.hpp"

namespace leasehold::http {

struct Route {
  std::string_view path;
  std::string_view method;
  boost::asio::awaitable<void> (*serve)(Shared& shared, const Caller& caller, std::string body,
                                        HttpStream& stream);
  bool is_resumable = false;  ///< Accepts Last-Event-ID while the worker drains.
};

inline constexpr std::string_view kAllowGet = "Allow: GET, HEAD, OPTIONS\r\n";

/// HEAD is answered where GET is; the connection leaves the body out. The refusal is a 404 or 405.
std::expected<const Route*, Answer> find_route(const Head& head);

}  // namespace leasehold::http
