/// Where one member of etcd serves clients. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_url.hpp"

namespace leasehold::etcd {

/// Which addresses are accepted. Passwords and values are not encrypted.
enum class Reach : std::uint8_t { ThisMachine, AnyMachine };

struct MemberAddress {
  std::string text;       ///< As it was configured; for errors and logs.
  std::string unix_path;  ///< Empty: TCP.
  http::Url url;          ///< Of TCP.

  /// "http://HOST:PORT" or "unix:/PATH". With Reach::ThisMachine only loopback addresses and Unix
  /// sockets. Errors: BadRequest with the text and a correction.
  static Result<MemberAddress> parse(std::string_view text, Reach reach);
  bool operator==(const MemberAddress&) const = default;
};

}  // namespace leasehold::etcd
