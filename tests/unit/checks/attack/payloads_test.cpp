#include "tests/checks/attack/payloads.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "ipc/control/envelope.hpp"
#include "ipc/control/excess.hpp"
#include "ipc/control/lease_token.hpp"
#include "ipc/control/messages_tenant.hpp"

namespace leasehold::attack {

TEST_CASE("attack payloads: the expensive line is valid and as long as a line may be") {
  const std::string line = expensive_line();
  CHECK(line.size() <= kLongLineBytes);
  CHECK(line.size() > kLongLineBytes - 1024);
  CHECK(line.find('\n') == line.size() - 1);
  CHECK(wire::Json::accept(line));
}

TEST_CASE("attack payloads: a worker parses the expensive line") {
  const std::string line = expensive_line();
  const auto envelope = control::parse_line(std::string_view(line).substr(0, line.size() - 1),
                                            {.max_values = 1 << 15});
  REQUIRE(std::holds_alternative<control::IncomingCall>(envelope.content));
  CHECK(std::get<control::IncomingCall>(envelope.content).params.at("a").size() > 100'000);
}

TEST_CASE("attack payloads: each bomb fits into one line, and is a request") {
  auto bombs = grammar_bombs();
  for (auto& bomb : schema_bombs()) bombs.push_back(std::move(bomb));
  CHECK(bombs.size() >= 15);
  for (const auto& [name, sampling] : bombs) {
    INFO(name);
    const std::string line =
        submit_line({.token = "t", .request_id = "r", .prompt = {}, .sampling = sampling});
    CHECK(line.size() < kLongLineBytes);
    const auto call = wire::Json::parse(line);
    const auto submit = wire::RequestSubmit::from_json(call.at("params"));
    REQUIRE(submit);
    CHECK_FALSE(
        (submit->sampling.grammar.empty() && submit->sampling.response_format.schema.empty()));
  }
}

TEST_CASE("attack payloads: the expensive body is as long as a body may be, and is parsed") {
  const std::string request = expensive_request("k");
  const std::string body = request.substr(request.find("\r\n\r\n") + 4);
  CHECK(body.size() == 500 << 10);
  CHECK(request.contains("Content-Length: " + std::to_string(body.size()) + "\r\n"));
  const auto parsed = control::parse_request_json(body, "the body");
  REQUIRE(parsed.has_value());
  CHECK(parsed->size() > 14'000);
  for (const std::string& endless : endless_requests("k"))
    CHECK(endless.size() > kLongLineBytes / 2);
}

TEST_CASE("attack payloads: no forged token is valid") {
  const TokenKey key = random_token_key();
  const std::string token = mint_token(key, {{7, 3}, {"ann"}});
  REQUIRE(verify_token(key, token));
  const auto forged = forged_tokens(token);
  CHECK(forged.size() >= 5);
  for (const std::string& each : forged) {
    INFO(each);
    CHECK_FALSE(verify_token(key, each));
  }
}

}  // namespace leasehold::attack
