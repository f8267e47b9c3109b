// The tokens that a gateway says another host has sent.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/emitted_tokens.hpp"

namespace leasehold::http {

using Json = nlohmann::json;

TEST_CASE("emitted tokens: those that the request cannot have are refused") {
  const ApiModel model{.name = "model", .max_context = 4096, .n_vocab = 256};
  const auto refused = [&](Api api, const char* emitted, const Json& more = Json::object(),
                           bool may_continue = true) {
    Json body{{"prompt", "Once"},
              {"messages", Json::parse(R"([{"role":"user","content":"Hi"}])")},
              {"max_tokens", 3}};
    body.update(more);
    body["emitted"] = Json::parse(emitted);
    const auto parsed = parse_api_request(api, body.dump(), model, {.may_continue = may_continue});
    if (parsed) return std::string("none");
    CHECK(parsed.error().error.code == Errc::BadRequest);
    return parsed.error().param;
  };
  for (const Api api : {Api::Completions, Api::Chat, Api::Messages}) {
    INFO(static_cast<int>(api));
    CHECK(refused(api, "[[1]]", Json::object(), false) == "emitted");
    CHECK(refused(api, "[]", Json::object(), false) == "emitted");
    CHECK(refused(api, "null", Json::object(), false) == "none");
    CHECK(refused(api, "[]") == "none");
    CHECK(refused(api, "[[]]") == "none");
    CHECK(refused(api, "[[1,2,3]]") == "none");
    CHECK(refused(api, "[[1,2,3,4]]") == "emitted/0");
    CHECK(refused(api, "[[1],[2]]") == "emitted");
    CHECK(refused(api, "[1]") == "emitted/0");
    CHECK(refused(api, "[null]") == "emitted/0");
    CHECK(refused(api, "{}") == "emitted");
    CHECK(refused(api, "\"1\"") == "emitted");
    CHECK(refused(api, "[[0,256]]") == "emitted/0/1");
    CHECK(refused(api, "[[0,-1]]") == "emitted/0/1");
    CHECK(refused(api, "[[0.5]]") == "emitted/0/0");
    CHECK(refused(api, "[[null]]") == "emitted/0/0");
    CHECK(refused(api, "[[\"1\"]]") == "emitted/0/0");
  }
  CHECK(refused(Api::Chat, "[[1],[2],[]]", {{"n", 3}}) == "none");
  CHECK(refused(Api::Completions, "[[1],[2],[3,4,5,6]]", {{"n", 2}, {"prompt", {"a", "b"}}}) ==
        "emitted/2");
  CHECK(refused(Api::Completions, "[[1]]", {{"max_tokens", 0}}) == "emitted/0");
}

}  // namespace leasehold::http
