/// Decides from the head of an HTTP request whether the rest is safe to read: two servers in a row
/// must not split it differently (request smuggling). Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

/// True if the words are equal, ignoring the case of ASCII letters.
bool equals_ignoring_case(std::string_view one, std::string_view other);

/// Limits the number of fields, because each field costs more memory than its bytes.
inline constexpr std::size_t kMaxHeadFields = 128;

struct Head {
  std::string method;
  std::string target;
  int version = 11;                                         ///< 10 or 11.
  std::vector<std::pair<std::string, std::string>> fields;  ///< In the order of arrival.

  /// The value of a field; nothing if the field is missing or occurs more than once. Ignores the
  /// case of names.
  std::optional<std::string_view> only(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  /// The target without its query.
  std::string_view path() const;
  /// KEY of the field "Authorization: Bearer KEY", or else of "x-api-key: KEY"; empty without both.
  std::string_view api_key() const;
};

/// Returns the refusal, after which the connection is closed; nothing for a head that can be
/// served. 400: two lengths, a length that is not a number, a length beside an encoding, another
/// encoding than chunked, HTTP/1.1 without exactly one Host, two Authorization or x-api-key
/// fields. 413: a length above `max_body_bytes`. 431: more than kMaxHeadFields fields.
std::optional<Answer> refuse_head(const Head& head, std::size_t max_body_bytes);

}  // namespace leasehold::http
