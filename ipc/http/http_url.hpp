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
  /// True for localhost and loopback addresses; any other name may mean another machine.
  bool is_on_this_machine() const;
  bool operator==(const Url&) const = default;
};

/// The text with %XX replaced by the byte. A '%' without two hex digits stays as it is.
std::string percent_decoded(std::string_view text);
/// The inverse: every byte but letters, digits and "-._~" becomes %XX.
std::string percent_encoded(std::string_view text);

/// The value of a field in a query, with %XX replaced by the byte; empty without it.
std::string query_value(std::string_view query, std::string_view name);

/// The page of a list that a query asks for: the fields `after` and `limit`.
struct PageQuery {
  std::string after;  ///< The id of the last entry of the page before; empty: the first page.
  std::size_t limit = 20;
};
/// Without a limit it is `otherwise`. Errors: BadRequest, for a limit that is not 1 to `most`.
Result<PageQuery> page_query(std::string_view query, std::size_t otherwise, std::size_t most);

}  // namespace leasehold::http
