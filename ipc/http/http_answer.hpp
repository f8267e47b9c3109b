/// What an HTTP server of ours sends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace leasehold::http {

struct Answer {
  int status = 200;
  std::string body;
  std::int64_t retry_after_s = 0;  ///< 0: no such header.
  std::string content_type = "application/json";
  std::string_view more_fields;  ///< Static: whole lines of the head, each with its "\r\n".
};

enum class Body { Sent, LeftOut };

/// The whole answer as it is sent with HTTP/1.1. A body that is left out still has its length.
std::string text_of(const Answer& answer, bool keep_alive, Body body = Body::Sent);

}  // namespace leasehold::http
