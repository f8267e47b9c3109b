// What a client of the HTTP door sees of a stream.
#include <catch2/catch.hpp>

#include "tools/checks/bench/sse_stream.hpp"
#include "worker/http/api_answer.hpp"

namespace leasehold::bench {

TEST_CASE("sse stream: events are recognised as the door writes them") {
  http::ApiRequest request;
  request.stream = true;
  const auto writer = http::answer_writer(request, "m", 0);
  CHECK(sse_kind_of(writer->add({.text = "a"}, {}).back().data) == SseKind::Token);
  CHECK(sse_kind_of(writer->add({.finish_reason = "length"}, {}).back().data) == SseKind::Other);
  CHECK(sse_kind_of(http::error_body({{Errc::LeaseRevoked, "x"}})) == SseKind::Error);
  CHECK(sse_kind_of("[DONE]") == SseKind::Done);
}

}  // namespace leasehold::bench
