/// Decides for which origins' pages browsers may send requests (CORS). Pure.
///
/// Before a browser sends a page's request, it asks with OPTIONS, without a key. It shows the page
/// only an answer that names the page's origin. The API key, which the page must have, protects the
/// requests; this class only decides which pages may send them at all.
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

  /// True if the request has an origin, and pages of that origin may send it.
  bool allows(const Head& head) const;
  /// The complete header lines that every answer to this request gets. They name the origin if it
  /// is allowed, and say to caches that the answer depends on it.
  std::string fields_for(const Head& head) const;

 private:
  bool any_ = false;
  std::vector<std::string> origins_;
};

/// The further header lines of the answer to OPTIONS, which say what the page may send.
/// Precondition: the origin is allowed.
std::string preflight_fields(const Head& head);

}  // namespace leasehold::http
