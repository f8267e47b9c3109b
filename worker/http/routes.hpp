/// The handlers of the HTTP paths, for a caller with a valid key.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "worker/http/file_transfer.hpp"
#include "worker/http/gateway_fields.hpp"
#include "worker/http/http_stream.hpp"
#include "worker/http/keys/key_check.hpp"

namespace leasehold::http {

/// What a client sends to a route.
struct RouteInput {
  std::string body;   ///< Empty for a route that reads it itself.
  std::string id;     ///< What the path has for the "ID" of its route, percent-decoded.
  std::string query;  ///< What the target has after '?', as the client sent it.
  std::string content_type;
  FileTransfer* transfer = nullptr;  ///< Outlives the call of the route.
  GatewayFields gateway = {};        ///< Only for a route that generates.
};

struct Route {
  std::string_view path;  ///< "ID" is a placeholder for any text that is not empty.
  std::string_view method;
  boost::asio::awaitable<void> (*serve)(Shared& shared, const Caller& caller, RouteInput input,
                                        HttpStream& stream);
  bool is_resumable = false;  ///< Accepts Last-Event-ID while the worker drains.
  bool reads_body = false;    ///< Takes the body from RouteInput::transfer, not as a whole.
  bool generates = false;     ///< Reads GatewayFields.
  bool has_identity = false;  ///< Its answers have the header Leasehold-Identity.
};

inline constexpr std::string_view kAllowGet = "Allow: GET, HEAD, OPTIONS\r\n";

/// Finds the route of a request, or returns an answer with status 404 or 405. HEAD gets the route
/// of GET; the connection leaves the body out.
std::expected<const Route*, Answer> find_route(const Head& head);

/// The input of a route without its body.
RouteInput input_of(const Route& route, const Head& head);

}  // namespace leasehold::http
