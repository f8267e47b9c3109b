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

TEST_CASE("sse stream: events of a server that writes the text first are recognised") {
  const std::string text = R"({"choices":[{"text":"a \"finish_reason\":null","index":0,)";
  CHECK(sse_kind_of(text + R"("logprobs":null,"finish_reason":null}],"created":1})") ==
        SseKind::Token);
  CHECK(sse_kind_of(text + R"("logprobs":null,"finish_reason":"length"}],"created":1})") ==
        SseKind::Other);
  CHECK(sse_kind_of(R"({"choices":[],"usage":{"completion_tokens":3}})") == SseKind::Other);
}

TEST_CASE("sse stream: a request has the prompt, and asks for the usage if it is wanted") {
  CompletionRequest request{.key = "k", .model = "m", .prompt = {5, 6}, .max_tokens = 7};
  CHECK(sse_request(request).find(R"("prompt":[5,6])") != std::string::npos);
  CHECK(sse_request(request).find("usage") == std::string::npos);
  request.include_usage = true;
  CHECK(sse_request(request).find(R"("stream_options":{"include_usage":true})") !=
        std::string::npos);
}

}  // namespace leasehold::bench
