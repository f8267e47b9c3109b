/// Where one member of etcd serves clients. Pure.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"
#include "ipc/http/http_url.hpp"

namespace leasehold::etcd {

/// The addresses that are accepted without encryption: passwords and values can be read there.
enum class Reach : std::uint8_t { ThisMachine, AnyMachine };

struct MemberAddress {
  std::string text;       ///< The text of the configuration, for errors and logs.
  std::string unix_path;  ///< Empty: TCP.
  bool is_encrypted = false;
  http::Url url;  ///< Host and port for TCP.

  /// "https://HOST:PORT", "http://HOST:PORT" or "unix:/PATH". With Reach::ThisMachine, http:// is
  /// only for loopback addresses. Errors: BadRequest with the text and a correction.
  static Result<MemberAddress> parse(std::string_view text, Reach reach);
  /// The value of the Host field.
  std::string authority() const { return unix_path.empty() ? url.authority() : "etcd"; }
  bool operator==(const MemberAddress&) const = default;
};

}  // namespace leasehold::etcd
