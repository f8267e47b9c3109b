/// Decides by the Host field which requests a server without keys answers. Pure.
///
/// A browser sends the host name that it looked up. A web site that points its own name at this
/// address (DNS rebinding) could otherwise read the pages.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/http/http_address.hpp"

namespace leasehold::http {

struct HostRule {
  bool any = true;  ///< False: allow only "localhost", every IP address, and `names`.
  std::vector<std::string> names;  ///< Allowed host names without a port; case is ignored.

  /// The rule of a server at this address. A server on a Unix socket allows any host, because a web
  /// site cannot reach it.
  static HostRule at(const Address& address, std::vector<std::string> names) {
    return {.any = !address.unix_path.empty(), .names = std::move(names)};
  }

  /// `host` is the value of the Host field: a name or an address, with or without a port. Without
  /// the field returns true: HTTP/1.0 permits that, and browsers always send it.
  bool allows(std::optional<std::string_view> host) const;
};

}  // namespace leasehold::http
