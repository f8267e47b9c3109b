/// The answers and events that the HTTP servers of this project send.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace leasehold::http {

struct Answer {
  int status = 200;
  std::string body;
  std::int64_t retry_after_s = 0;  ///< The Retry-After header; 0: none.
  std::string content_type = "application/json";
  /// Further lines of the head, each with its "\r\n". Must outlive the answer.
  std::string_view extra_headers;
};

/// One event of a stream, or only a comment.
struct ServerEvent {
  std::string data;       ///< One line. Empty: no event, only the comment.
  std::string name = {};  ///< Empty: none.
  std::string id = {};    ///< A client that reconnects sends this id as Last-Event-ID. Empty: none.
  std::string comment = {};  ///< One line, which clients skip. Empty: none.
};
using ServerEvents = std::vector<ServerEvent>;

enum class Body { Sent, LeftOut };

/// Returns the whole answer as HTTP/1.1 text; `extra_headers` follows those of the answer. With
/// LeftOut the head still has the length of the body. Moves the body, which may be large, out of
/// the answer.
std::string text_of(Answer&& answer, bool keep_alive, Body body = Body::Sent,
                    std::string_view extra_headers = {});

}  // namespace leasehold::http
