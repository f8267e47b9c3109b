/// The address of a server that this project calls, "http://host:port[/path]", and texts in URLs.
#pragma once

#include <string>
#include <string_view>

#include "common/result.hpp"

namespace leasehold::http {

struct Url {
  std::string host;  ///< A name or an address; an IPv6 address without its brackets.
  std::string port;
  std::string path;  ///< Empty, or starts with a slash and does not end with one.

  /// Errors: BadRequest with the invalid part and a correction.
  static Result<Url> parse(std::string_view text);

  /// "host:port", as in the Host header.
  std::string authority() const;
  /// "http://host:port/path".
  std::string text() const;
  bool operator==(const Url&) const = default;
};

/// The text with %XX replaced by the byte. A '%' without two hex digits stays as it is.
std::string percent_decoded(std::string_view text);

}  // namespace leasehold::http
