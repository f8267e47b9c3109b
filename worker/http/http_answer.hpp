/// What the HTTP door sends.
#pragma once

#include <cstdint>
#include <string>

namespace leasehold::http {

struct Answer {
  int status = 200;
  std::string body;                ///< JSON.
  std::int64_t retry_after_s = 0;  ///< 0: no such header.
};

}  // namespace leasehold::http
