// Bodies of wrong types and beyond the limits are refused, and end nothing else.
#include <catch2/catch.hpp>

#include "worker/http/api_request.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

/// The field that is refused in a chat with these members.
std::string refused_field(const std::string& members) {
  const std::string body =
      R"({"model":"m","messages":[{"role":"user","content":"Hi"}],)" + members + "}";
  const ApiModel model{.name = "m", .max_context = 256, .has_tools = true};
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
    CHECK(refused_field(R"("tools":[)" + function + R"(,"type":"function"}])") == "tools");
  }
  for (const char* type : {"5", "null", "[]", "{}", "\"text\""}) {
    CHECK(refused_field(R"("tools":[{"function":{"name":"f"},"type":)" + std::string(type) +
                        "}]") == "tools");
  }
}
