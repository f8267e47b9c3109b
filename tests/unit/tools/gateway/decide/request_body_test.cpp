// What the gateway reads of a body, and the member that it adds.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "tools/gateway/decide/place.hpp"
#include "tools/gateway/decide/request_body.hpp"

using namespace leasehold;
using namespace leasehold::gateway;

namespace {

BodyFacts facts(std::string_view body) {
  const Result<BodyFacts> read = read_body(body);
  REQUIRE(read.has_value());
  return *read;
}

}  // namespace

TEST_CASE("request body: model, form and prompt are found among other members") {
  const BodyFacts chat =
      facts(R"( { "x" : {"model":"no","stream":true}, "m\u006fdel" : "qwen\"3" , "stream":true,)"
            R"("messages" : [ {"role":"user","content":"a } \" ] b"} ] , "n":3 } )");
  CHECK(chat.model == "qwen\"3");
  CHECK(chat.form == AnswerForm::Events);
  CHECK(chat.prompt == R"([ {"role":"user","content":"a } \" ] b"} ])");
  CHECK(chat.choices == 3);
  const BodyFacts empty = facts("{}");
  CHECK(empty.model.empty());
  CHECK(empty.form == AnswerForm::Document);
  CHECK(empty.choices == 1);
  CHECK(facts(R"({"model":"a","model":"b"})").model == "b");
  CHECK(facts(R"({"model":7,"stream":"true"})").model.empty());
}

TEST_CASE("request body: the prompt of every API places the request") {
  CHECK(facts(R"({"prompt":"p"})").prompt == R"("p")");
  CHECK(facts(R"({"input":"i","instructions":"s"})").prompt == R"("s""i")");
  CHECK(facts(R"({"messages":[1],"system":"s"})").prompt == R"("s"[1])");
  const std::string body = R"({"prompt":")" + std::string(5000, 'x') + R"("})";
  CHECK(facts(body).prompt.size() == kPlacedPromptBytes);
}

TEST_CASE("request body: each prompt has n choices") {
  CHECK(facts(R"({"prompt":["a","b"],"n":2})").choices == 4);
  CHECK(facts(R"({"prompt":[[1,2],[3]],"n":1})").choices == 2);
  CHECK(facts(R"({"prompt":[1,2,3]})").choices == 1);
  CHECK(facts(R"({"prompt":[]})").choices == 1);
  CHECK(facts(R"({"n":0})").choices == 1);
  CHECK(facts(R"({"n":-4})").choices == 1);
  CHECK(facts(R"({"n":"5"})").choices == 1);
  CHECK(facts(R"({"n":99999999999999999999})").choices == 1);
  CHECK(facts(R"({"n":4000000000})").choices == kMaxChoices);
}

TEST_CASE("request body: another form is a typed error") {
  for (const char* wrong : {"", " ", "[]", "7", "\"{}\"", "{", "{}x", "{\"a\":}", "\xff{}"}) {
    CAPTURE(wrong);
    const auto read = read_body(wrong);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().code == Errc::BadRequest);
  }
}

TEST_CASE("request body: a client cannot send known tokens, in any spelling") {
  for (const char* wrong :
       {R"({"emitted":[[1]]})", R"({"a":1, "emitted" : null})", R"({"\u0065mitted":[]})"}) {
    CAPTURE(wrong);
    const auto read = read_body(wrong);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().detail.contains("emitted"));
  }
  CHECK(read_body(R"({"a":{"emitted":1},"b":"emitted"})").has_value());
}

TEST_CASE("request body: another arithmetic is accepted only if the request says so") {
  CHECK(facts(R"({"any_arithmetic":true})").any_arithmetic);
  CHECK_FALSE(facts(R"({"any_arithmetic":false})").any_arithmetic);
  CHECK_FALSE(facts(R"({"any_arithmetic":null})").any_arithmetic);
  CHECK_FALSE(facts(R"({"x":{"any_arithmetic":true}})").any_arithmetic);
  for (const char* wrong : {R"({"any_arithmetic":"true"})", R"({"any_arithmetic":1})"}) {
    const auto read = read_body(wrong);
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().detail.contains("any_arithmetic is"));
  }
}

TEST_CASE("request body: the gateway knows whether the client can come back") {
  CHECK(facts(R"({"resumable":true})").resumable);
  CHECK_FALSE(facts(R"({"resumable":false})").resumable);
  CHECK_FALSE(facts(R"({"resumable":"true"})").resumable);  // the host refuses it
}

TEST_CASE("request body: known tokens are added in front, and nothing else changes") {
  const std::string body = " {\n \"a\" : 1.0e3, \"b\":\"\\u00e9\" }\n";
  CHECK(with_emitted(body, {{1, 2}, {}, {3}}) ==
        " {\"emitted\":[[1,2],[],[3]],\n \"a\" : 1.0e3, \"b\":\"\\u00e9\" }\n");
  CHECK(with_emitted(body, {{5}, {}, {}}).starts_with(" {\"emitted\":[[5]],"));
  CHECK(with_emitted("{ }", {{7}}) == "{\"emitted\":[[7]] }");
  CHECK(with_emitted(body, {{}, {}}) == body);
  CHECK(with_emitted(body, {}) == body);
  CHECK(nlohmann::json::parse(with_emitted(body, {{2147483647}}))["emitted"][0][0] == 2147483647);
}
