/// What a browser's page of another origin is allowed to do (CORS). Pure.
///
/// A browser asks with OPTIONS, without a key, before it sends a request of a page, and gives the
/// page an answer only if that names the page's origin. The key, which the page must have, protects
/// the requests; this decides for whose pages browsers send them.
/// Source: WHATWG Fetch, "CORS protocol".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"
#include "ipc/http/http_framing.hpp"

namespace leasehold::http {

class AllowedOrigins {
 public:
  /// "*", or origins such as "https://chat.example:8443". Errors: BadRequest.
  static Result<AllowedOrigins> parse(const std::vector<std::string>& origins);

  /// Whole lines of the head of every answer to this request; empty for an origin that is not
  /// allowed, and for a request without one.
  std::string fields_for(const Head& head) const;

 private:
  bool any_ = false;
  std::vector<std::string> origins_;
};

/// Of the answer to OPTIONS, beside fields_for, which is not empty: what the page may send.
std::string preflight_fields(const Head& head);

}  // namespace leasehold::http
