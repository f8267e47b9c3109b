// What a gateway adds to the head of a request, and the names of hosts.
#include "worker/http/gateway_fields.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "worker/http/api/api_request.hpp"
#include "worker/http/host_name.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Catch::Contains;

namespace {

const std::string kDigest(64, 'a');

using Fields = std::vector<std::pair<std::string, std::string>>;

std::expected<GatewayFields, ApiError> read(Fields fields, bool is_trusted = true) {
  return GatewayFields::of({.method = "POST", .target = "/", .fields = std::move(fields)},
                           is_trusted);
}

}  // namespace

TEST_CASE("gateway fields: a gateway's are read, and without them nothing is set") {
  const auto none = read({{"Host", "h"}, {"Leasehold-Other", "x"}}, false).value();
  CHECK_FALSE(none.beat);
  CHECK_FALSE(none.created_unix_s);
  CHECK_FALSE(none.request_id);
  CHECK(none.moved_from.empty());
  CHECK(none.adapters.empty());
  const auto all = read({{"leasehold-stream", "500"},
                         {"Leasehold-Created", "0"},
                         {"Leasehold-Adapters", "," + kDigest},
                         {"LEASEHOLD-REQUEST", "r.1:a_b-c"},
                         {"Leasehold-Moved-From", "host-1.example"}})
                       .value();
  CHECK(all.beat == std::chrono::milliseconds(500));
  CHECK(all.created_unix_s == 0);
  CHECK(all.adapters == std::vector<std::string>{"", kDigest});
  CHECK(all.request_id == RequestId{"r.1:a_b-c"});
  CHECK(all.moved_from == "host-1.example");
}

TEST_CASE("gateway fields: a host that may still run a text is one with a name in its cell") {
  CHECK(running_host("host-1.example") == HostName{"host-1.example"});
  CHECK_FALSE(running_host("unknown"));  // it ended the text
  CHECK_FALSE(running_host(""));
  CHECK_FALSE(running_host("a host"));
}

TEST_CASE("gateway fields: a wrong one is refused by its name, with what to send") {
  const Fields wrong{{"Leasehold-Stream", "49"},
                     {"Leasehold-Stream", "10001"},
                     {"Leasehold-Stream", "500ms"},
                     {"Leasehold-Stream", ""},
                     {"Leasehold-Created", "-1"},
                     {"Leasehold-Created", "253402300800"},
                     {"Leasehold-Created", "1.5"},
                     {"Leasehold-Created", "99999999999999999999"},
                     {"Leasehold-Adapters", kDigest.substr(1)},
                     {"Leasehold-Adapters", kDigest + ", " + kDigest},
                     {"Leasehold-Adapters", std::string(16, ',')},
                     {"Leasehold-Request", "two words"},
                     {"Leasehold-Request", ""},
                     {"Leasehold-Request", std::string(65, 'r')},
                     {"Leasehold-Moved-From", "a=b code=x"},
                     {"Leasehold-Moved-From", ""}};
  for (const auto& field : wrong) {
    CAPTURE(field.first, field.second);
    const auto refused = read({field});
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().error.code == Errc::BadRequest);
    CHECK(refused.error().param == field.first);
    CHECK_THAT(refused.error().error.detail,
               Contains("'" + field.second.substr(0, 40)) && Contains("; send "));
  }
}

TEST_CASE("gateway fields: one of a client, or one that is sent twice, is refused") {
  for (const char* name : {"Leasehold-Stream", "Leasehold-Created", "Leasehold-Adapters",
                           "Leasehold-Request", "Leasehold-Moved-From"}) {
    const auto client = read({{name, "500"}}, false);
    REQUIRE_FALSE(client.has_value());
    CHECK(client.error().param == name);
    CHECK_THAT(client.error().error.detail, Contains("--http-trusted-proxy"));
    const auto twice = read({{name, "500"}, {name, "500"}});
    REQUIRE_FALSE(twice.has_value());
    CHECK_THAT(twice.error().error.detail, Contains("sent 2 times"));
  }
}

TEST_CASE("gateway fields: the default seed is FNV-1a of the request id, on every machine") {
  // The published sums of these texts are 85944171f73967e8 and af63dc4c8601ec8c.
  CHECK(default_seed({"foobar"}) == 0x85944171f73967e8 >> 1);
  CHECK(default_seed({"a"}) == 0xaf63dc4c8601ec8c >> 1);
}

TEST_CASE("gateway fields: the id is that of a body without one, and the time is the request's") {
  const RequestDefaults head{.request_id = RequestId{"h-1"}, .created_unix_s = 7};
  const ApiModel model{.name = "tiny", .max_context = 256};
  const auto read_body = [&](Api api, const nlohmann::json& body) {
    return parse_api_request(api, body.dump(), model, head).value();
  };
  const nlohmann::json chat{{"messages", {{{"role", "user"}, {"content", "Hi"}}}},
                            {"max_tokens", 4}};
  for (const Api api : {Api::Chat, Api::Messages}) {
    const ApiRequest request = read_body(api, chat);
    CHECK(request.submit.request_id.value == "h-1");
    CHECK(request.submit.sampling.seed == default_seed({"h-1"}));
    CHECK(request.created_unix_s == 7);
    CHECK(submission_of(request, 0).asked_at_unix_s == 7);
  }
  CHECK(read_body(Api::Responses, {{"input", "Hi"}}).submit.request_id.value == "h-1");
  const ApiRequest named = read_body(Api::Completions, {{"prompt", "x"}, {"request_id", "b-1"}});
  CHECK(named.submit.request_id.value == "b-1");
  CHECK(named.submit.sampling.seed == default_seed({"b-1"}));
}

TEST_CASE("host name: it has letters, digits, '.', '-', '_' and ':', and the machine's is one") {
  CHECK(is_host_name("a-1_b.example:2"));
  for (const std::string& wrong : {std::string(), std::string("a b"), std::string("a\r\nb"),
                                   std::string("h/1"), std::string(254, 'h')}) {
    CHECK_FALSE(is_host_name(wrong));
    CHECK_FALSE(check_host_name(wrong).empty());
  }
  CHECK(is_host_name(machine_host_name()));
}
