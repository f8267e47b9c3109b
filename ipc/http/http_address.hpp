/// Where the HTTP server listens: `--http`. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::http {

struct Address {
  std::string unix_path;  ///< Empty: TCP.
  std::string ip;         ///< IPv4, or IPv6 without brackets.
  std::uint16_t port = 0;

  /// "127.0.0.1:8080", "[::1]:8080", or the absolute path of a Unix socket of at most 107 bytes,
  /// which is not a directory. Without `any_address` only loopback addresses are valid, because the
  /// HTTP server does not encrypt. Errors: BadRequest.
  static Result<Address> parse(std::string_view text, bool any_address);
};

}  // namespace leasehold::http
