// Which path is served, and what is said of an unknown one.
#include "worker/http/routes.hpp"

#include <catch2/catch.hpp>

#include "worker/http/batch/file_routes.hpp"

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
    return input_of(**route, head).id;
  };
  CHECK(id_in("/v1/models/org/a%20b%2Fc%C3%A4?x=1") == "org/a b/cä");
  CHECK(id_in("/v1/models/100%") == "100%");
  CHECK(id_in("/v1/models/%2 %+1%zz") == "%2 %+1%zz");
  CHECK(id_in("/v1/models").empty());
  CHECK(find_route({.method = "GET", .target = "/v1/models/"}).error().status == 404);
  const Head cancel{.method = "POST", .target = "/v1/requests/a%2Fb/cancel"};
  const auto cancel_route = find_route(cancel);
  REQUIRE(cancel_route.has_value());
  CHECK(input_of(**cancel_route, cancel).id == "a/b");
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

TEST_CASE("http routes: a path with several methods has a route for each, and 405 names them") {
  const auto route_of = [](const std::string& method, const std::string& target) {
    return find_route({.method = method, .target = target});
  };
  CHECK(route_of("POST", "/v1/files").value()->reads_body);
  CHECK_FALSE(route_of("GET", "/v1/files?limit=2").value()->reads_body);
  CHECK(route_of("HEAD", "/v1/files/f/content").value()->path == "/v1/files/ID/content");
  CHECK(route_of("DELETE", "/v1/files/f").value()->path == "/v1/files/ID");
  CHECK(route_of("DELETE", "/v1/files/f/content").error().extra_headers == kAllowGet);
  CHECK_THAT(route_of("PUT", "/v1/files/f").error().body, Contains("use GET or DELETE"));
  CHECK_THAT(std::string(route_of("PUT", "/v1/batches").error().extra_headers),
             Contains("GET, HEAD, POST"));
  const Head asked{.method = "GET", .target = "/v1/batches?limit=3&after=b%201&x"};
  const RouteInput input = input_of(*find_route(asked).value(), asked);
  CHECK(query_value(input.query, "after") == "b 1");
  CHECK(query_value(input.query, "x").empty());
  CHECK(page_query(input.query, 20, 100)->limit == 3);
  CHECK(page_query("limit=0", 20, 100).error().code == leasehold::Errc::BadRequest);
  CHECK(page_query("limit=9999", 20, 100).error().code == leasehold::Errc::BadRequest);
}

TEST_CASE("http routes: a list says which of its entries are the first and the last") {
  const auto list = list_of({{{"id", "a"}}, {{"id", "b"}}}, true);
  CHECK(list["has_more"] == true);
  CHECK(list["first_id"] == "a");
  CHECK(list["last_id"] == "b");
  CHECK(list["data"].size() == 2);
  CHECK(list_of({}, false)["first_id"].is_null());
}
