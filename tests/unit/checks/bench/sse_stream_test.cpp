// What a client of the HTTP door sees of a stream.
#include <catch2/catch.hpp>

#include "tests/checks/bench/sse_stream.hpp"
#include "worker/http/api/api_answer.hpp"

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

TEST_CASE("sse stream: a request has the key, the model and the number of tokens") {
  const std::string request = sse_request("k", "m", 7);
  for (const char* part : {"Bearer k\r\n", R"("model":"m")", R"("max_tokens":7)"}) {
    CAPTURE(part);
    CHECK(request.contains(part));
  }
}

}  // namespace leasehold::bench
