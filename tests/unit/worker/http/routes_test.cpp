// Which path is served, and what is said of an unknown one.
#include "worker/http/routes.hpp"

#include <catch2/catch.hpp>

using namespace leasehold::http;
using Catch::Contains;

TEST_CASE("http routes: an unknown path gets the list of paths, and a wrong method the right one") {
  const auto unknown = find_route({.method = "GET", .target = "/v2/x\n"});
  REQUIRE_FALSE(unknown.has_value());
  CHECK(unknown.error().status == 404);
  CHECK_THAT(
      unknown.error().body,
      Contains(
          "no path /v2/x?; the paths are /health, /v1/models, /v1/models/ID, /v1/completions, ") &&
          Contains(", /v1/requests/ID/cancel, ") && Contains(", /detokenize"));
  const auto wrong = find_route({.method = "GET", .target = "/v1/completions"});
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().status == 405);
  CHECK(find_route({.method = "POST", .target = "/v1/completions"}).has_value());
  for (const std::string target :
       {"/v1/requests/", "/v1/requests/r", "/v1/requests/cancel", "/v1/requests//cancel"})
    CHECK(find_route({.method = "POST", .target = target}).error().status == 404);
}

TEST_CASE("http routes: an id in a path is decoded") {
  const auto id_in = [](const std::string& target) {
    const Head head{.method = "HEAD", .target = target};
    const auto route = find_route(head);
    REQUIRE(route.has_value());
    return id_in_path(**route, head);
  };
  CHECK(id_in("/v1/models/org/a%20b%2Fc%C3%A4?x=1") == "org/a b/cä");
  CHECK(id_in("/v1/models/100%") == "100%");
  CHECK(id_in("/v1/models/%2 %+1%zz") == "%2 %+1%zz");
  CHECK(id_in("/v1/models").empty());
  CHECK(find_route({.method = "GET", .target = "/v1/models/"}).error().status == 404);
  const Head cancel{.method = "POST", .target = "/v1/requests/a%2Fb/cancel"};
  const auto cancel_route = find_route(cancel);
  REQUIRE(cancel_route.has_value());
  CHECK(id_in_path(**cancel_route, cancel) == "a/b");
  const auto wrong = find_route({.method = "DELETE", .target = "/v1/models/m"});
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.error().status == 405);
  CHECK(wrong.error().extra_headers == kAllowGet);
}

TEST_CASE("http routes: a client comes back to those alone that generate") {
  const auto generates = [](const std::string& method, const std::string& path) {
    const auto route = find_route({.method = method, .target = path, .fields = {}});
    REQUIRE(route.has_value());
    return (*route)->is_resumable;
  };
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/v1/responses"})
    CHECK(generates("POST", path));
  for (const char* path : {"/tokenize", "/detokenize"}) CHECK_FALSE(generates("POST", path));
  CHECK_FALSE(generates("GET", "/v1/models"));
}
