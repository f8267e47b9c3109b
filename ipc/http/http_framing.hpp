/// Decides whether the head of an HTTP request is safe to read on: no shape that two servers in a
/// row could split differently. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "ipc/http/http_answer.hpp"

namespace leasehold::http {

/// Equal but for upper and lower case of ASCII letters.
bool same_word(std::string_view one, std::string_view other);

/// Each costs more memory than its bytes.
inline constexpr std::size_t kMaxHeadFields = 128;

struct Head {
  std::string method;
  std::string target;
  int version = 11;                                         ///< 10 or 11.
  std::vector<std::pair<std::string, std::string>> fields;  ///< In the order of arrival.

  /// Nothing when the field is missing, or there are several of it. Names ignore case.
  std::optional<std::string_view> only(std::string_view name) const;
  std::size_t count(std::string_view name) const;
  /// The target without its query.
  std::string_view path() const;
  /// Of "Authorization: Bearer KEY"; empty without one.
  std::string_view bearer_key() const;
};

/// The refusal, after which the connection is closed; nothing for a head that can be served.
/// 400: two lengths, a length beside an encoding, another encoding than chunked, a method that has
/// no body with one, HTTP/1.1 without exactly one Host. 413: a length above `max_body_bytes`. 431:
/// more than kMaxHeadFields fields.
std::optional<Answer> refuse_head(const Head& head, std::size_t max_body_bytes);

}  // namespace leasehold::http
