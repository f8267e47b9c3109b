/// The text of a request to a host, made from a client's. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "ipc/http/http_framing.hpp"
#include "ipc/http/http_source.hpp"

namespace leasehold::gateway {

/// True for fields that concern one connection or its framing: Connection, Content-Length, Host,
/// Transfer-Encoding and so on. Source: RFC 9110, section 7.6.1.
bool is_about_connection(std::string_view field);

struct HostRequest {
  const http::Head* client = nullptr;  ///< The client's head, which outlives this.
  std::string host;                    ///< The value of Host.
  std::string_view x_request_id;
  /// The client's address, to which the host charges its use. A user on a Unix socket has none.
  http::PeerAddress client_address;
  std::string fields = {};  ///< Lines of the gateway's own, each with its "\r\n".
  std::string_view body = {};
  /// The line that frames a body which follows the text, with its "\r\n". Empty: `body` is whole.
  std::string framing = {};

  /// Passes on the client's fields but those about the connection, the gateway's own
  /// (`Leasehold-…`), Expect, and addresses that a client may have written itself.
  std::string text() const;
};

}  // namespace leasehold::gateway
