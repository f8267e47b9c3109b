// What a gateway adds to the head of a request, and the names of hosts.
#include "worker/http/gateway_fields.hpp"

#include <catch2/catch.hpp>

#include "worker/http/host_name.hpp"

using namespace leasehold;
using namespace leasehold::http;
using Catch::Contains;

namespace {

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
  const auto all = read({{"leasehold-stream", "500"},
                         {"Leasehold-Created", "0"},
                         {"LEASEHOLD-REQUEST", "r.1:a_b-c"},
                         {"Leasehold-Moved-From", "host-1.example"}})
                       .value();
  CHECK(all.beat == std::chrono::milliseconds(500));
  CHECK(all.created_unix_s == 0);
  CHECK(all.request_id == RequestId{"r.1:a_b-c"});
  CHECK(all.moved_from == "host-1.example");
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
  for (const char* name :
       {"Leasehold-Stream", "Leasehold-Created", "Leasehold-Request", "Leasehold-Moved-From"}) {
    const auto client = read({{name, "500"}}, false);
    REQUIRE_FALSE(client.has_value());
    CHECK(client.error().param == name);
    CHECK_THAT(client.error().error.detail, Contains("--http-trusted-proxy"));
    const auto twice = read({{name, "500"}, {name, "500"}});
    REQUIRE_FALSE(twice.has_value());
    CHECK_THAT(twice.error().error.detail, Contains("sent 2 times"));
  }
}

TEST_CASE("host name: it has letters, digits, '.', '-' and '_', and the machine's is one") {
  CHECK(is_host_name("a-1_b.example"));
  for (const std::string& wrong : {std::string(), std::string("a b"), std::string("a\r\nb"),
                                   std::string("h/1"), std::string(254, 'h')}) {
    CHECK_FALSE(is_host_name(wrong));
    CHECK_FALSE(check_host_name(wrong).empty());
  }
  CHECK(is_host_name(machine_host_name()));
}
