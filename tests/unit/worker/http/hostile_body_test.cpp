// Bodies of wrong types and beyond the limits are refused, and end nothing else.
#include <catch2/catch.hpp>

#include "tests/support/tiny_tokenizer.hpp"
#include "worker/http/api/api_request.hpp"
#include "worker/http/api/tokenize_api.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

/// The field that is refused in a chat with these members.
std::string refused_field(const std::string& members) {
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"Hi"}],)" + members + "}";
  const ApiModel model{.name = "m", .max_context = 256};
  const auto request = parse_api_request(Api::Chat, body, model);
  REQUIRE_FALSE(request.has_value());
  CHECK(request.error().error.code == Errc::BadRequest);
  return request.error().param;
}

}  // namespace

TEST_CASE("http body: a name that is not a text is refused in a tool and in the choice of one") {
  const std::string tools =
      R"("tools":[{"type":"function","function":{"name":"f"}}],"tool_choice":)";
  for (const char* name : {"5", "true", "[]", "{}", "null", "1.5", "\"\""}) {
    INFO(name);
    const std::string function = R"({"function":{"name":)" + std::string(name) + "}";
    CHECK(refused_field(R"("tool_choice":)" + function + "}") == "tool_choice");
    CHECK(refused_field(tools + function + "}") == "tool_choice");
    CHECK(refused_field(R"("tools":[)" + function + R"(,"type":"function"}])") ==
          "tools/0/function/name");
  }
  for (const char* type : {"5", "null", "[]", "{}", "\"text\""}) {
    CHECK(refused_field(R"("tools":[{"function":{"name":"f"},"type":)" + std::string(type) +
                        "}]") == "tools/0/type");
  }
}

TEST_CASE("http body: deep bodies and those of too many values are not parsed to be tokenized") {
  const Tokenizer tokenizer = testing::tiny_tokenizer();
  const auto body_of = [](const std::string& value) {
    return R"({"prompt":"a","tokens":[5],"x":)" + value + "}";
  };
  std::string many = "[\"\"";
  for (int i = 0; i < 33'000; ++i) many += ",\"\"";
  for (const std::string& value :
       {std::string(40, '[') + std::string(40, ']'), many + "]", std::string("nothing")}) {
    CHECK(tokenize(body_of(value), tokenizer, {}, {}).status == 400);
    CHECK(detokenize(body_of(value), tokenizer, {}).status == 400);
  }
  CHECK(tokenize(body_of("1"), tokenizer, {}, {}).status == 200);
  CHECK(detokenize(body_of("1"), tokenizer, {}).status == 200);
}

TEST_CASE("http body: each bias counts, also one of the same token in other digits") {
  std::string biases = R"("logit_bias":{"5":1)";
  for (std::size_t zeros = 1; zeros <= SamplingParams::kMaxLogitBiases; ++zeros)
    biases += ",\"" + std::string(zeros, '0') + "5\":1";
  CHECK(refused_field(biases + "}") == "logit_bias");
}
