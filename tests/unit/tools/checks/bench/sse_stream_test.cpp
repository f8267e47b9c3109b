// What a client of the HTTP door sees of a stream.
#include <catch2/catch.hpp>

#include "tools/checks/bench/sse_stream.hpp"
#include "worker/http/api_answer.hpp"

namespace leasehold::bench {

TEST_CASE("sse stream: events are recognised as the door writes them") {
  http::AnswerWriter writer({}, "m", 0);
  const std::string token = writer.chunk({.text = "a"}, {});
  CHECK(sse_kind_of(token) == SseKind::Token);
  CHECK(sse_kind_of(writer.chunk({.finish_reason = "length"}, {})) == SseKind::Other);
  CHECK(sse_kind_of(http::error_body({{Errc::LeaseRevoked, "x"}})) == SseKind::Error);
  CHECK(sse_kind_of("[DONE]") == SseKind::Done);
}

}  // namespace leasehold::bench
