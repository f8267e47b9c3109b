/// Which requests a server without keys answers, by their Host. Pure.
///
/// A browser sends the name that it looked up. A site whose name was pointed at this address (DNS
/// rebinding) would otherwise read the pages as its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/http/http_address.hpp"

namespace leasehold::http {

struct HostRule {
  bool any = true;                 ///< Otherwise "localhost", every IP address, and `names`.
  std::vector<std::string> names;  ///< Without a port; upper and lower case are equal.

  /// Of a server at this address: a Unix socket answers any, since no foreign site reaches it.
  static HostRule at(const Address& address, std::vector<std::string> names) {
    return {.any = !address.unix_path.empty(), .names = std::move(names)};
  }

  /// `host` is the value of the field: a name or an address, with or without a port. Without the
  /// field, which HTTP/1.0 permits and no browser does, the answer is yes.
  bool allows(std::optional<std::string_view> host) const;
};

}  // namespace leasehold::http
