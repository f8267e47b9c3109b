/// Where a host answers HTTP: an entry of `hosts`. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_url.hpp"

namespace leasehold::gateway {

struct HostAddress {
  std::string text;       ///< The text of the configuration; names the host in logs and metrics.
  std::string unix_path;  ///< Empty: TCP.
  bool is_encrypted = false;
  http::Url url = {};  ///< Host and port; unused with a Unix socket.

  /// "http://10.0.0.1:8080", "https://gpu1.example:8443", or "unix:/run/w1.http". Errors:
  /// BadRequest with the wrong part.
  static Result<HostAddress> parse(std::string_view text);
  /// The value of the Host field.
  std::string authority() const { return unix_path.empty() ? url.authority() : "localhost"; }
  /// Requests to the host, keys included, cross a network without encryption.
  bool is_exposed() const;
  bool operator==(const HostAddress&) const = default;
};

}  // namespace leasehold::gateway
