/// What an HTTP server of ours sends.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::http {

struct Answer {
  int status = 200;
  std::string body;
  std::int64_t retry_after_s = 0;  ///< 0: no such header.
  std::string content_type = "application/json";
};

/// The whole answer as it is sent with HTTP/1.1.
std::string text_of(const Answer& answer, bool keep_alive);

}  // namespace leasehold::http
