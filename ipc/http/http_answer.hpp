/// What an HTTP server of ours sends.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::http {

struct Answer {
  int status = 200;
  std::string body;
  std::int64_t retry_after_s = 0;  ///< 0: no such header.
  std::string content_type = "application/json";
  std::string_view more_fields;  ///< Static: whole lines of the head, each with its "\r\n".
};

/// One event of a stream.
struct ServerEvent {
  std::string data;       ///< One line.
  std::string name = {};  ///< Empty: none.
  std::string id = {};    ///< A client that reconnects sends it as Last-Event-ID. Empty: none.
};
using ServerEvents = std::vector<ServerEvent>;

enum class Body { Sent, LeftOut };

/// The whole answer as it is sent with HTTP/1.1; `more_fields` as those of Answer. A body that is
/// left out still has its length. Takes the body out of the answer, which may be large.
std::string text_of(Answer&& answer, bool keep_alive, Body body = Body::Sent,
                    std::string_view more_fields = {});

}  // namespace leasehold::http
