// Addresses to listen on, and heads that are safe to read on.
#include <catch2/catch.hpp>

#include "ipc/http/http_address.hpp"
#include "ipc/http/http_framing.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

constexpr std::size_t kMaxBody = 1000;

/// 0 for a head that can be served.
int refused(Head head) {
  head.fields.emplace_back("host", "h");
  const auto answer = refuse_head(head, kMaxBody);
  return answer ? answer->status : 0;
}

}  // namespace

TEST_CASE("http address: only loopback without a flag") {
  CHECK(Address::parse("127.0.0.1:8080", false)->port == 8080);
  CHECK(Address::parse("[::1]:80", false)->ip == "::1");
  CHECK(Address::parse("/run/http.sock", false)->unix_path == "/run/http.sock");
  CHECK_FALSE(Address::parse("0.0.0.0:8080", false).has_value());
  CHECK_FALSE(Address::parse("[::]:8080", false).has_value());
  CHECK(Address::parse("0.0.0.0:8080", true)->ip == "0.0.0.0");
  for (const char* text : {"", "8080", "localhost:80", "127.0.0.1:", "127.0.0.1:70000", "::1:80",
                           "[127.0.0.1]:80", "127.0.0.1:80x", "relative/path"})
    CHECK_FALSE(Address::parse(text, true).has_value());
}

TEST_CASE("http address: a path that no Unix socket can have is refused, with what is wrong") {
  const auto path = [](std::size_t bytes) { return "/" + std::string(bytes - 1, 'x'); };
  CHECK(Address::parse(path(107), false).has_value());
  const auto longer = Address::parse(path(108), false);
  REQUIRE_FALSE(longer);
  CHECK(longer.error().code == Errc::BadRequest);
  CHECK_THAT(longer.error().detail, Catch::Contains("at most 107 bytes"));
  CHECK_FALSE(Address::parse("/", false).has_value());
}

TEST_CASE("http head: shapes that two servers could split differently are refused") {
  CHECK(refused({.fields = {{"Content-Length", "10"}}}) == 0);
  CHECK(refused({.fields = {{"Transfer-Encoding", "chunked"}}}) == 0);
  CHECK(refused({.fields = {{"Content-Length", "10"}, {"content-length", "10"}}}) == 400);
  CHECK(refused({.fields = {{"Content-Length", "10"}, {"Transfer-Encoding", "chunked"}}}) == 400);
  CHECK(refused({.fields = {{"Transfer-Encoding", "chunked"}, {"transfer-encoding", "x"}}}) == 400);
  CHECK(refused({.fields = {{"Transfer-Encoding", "gzip, chunked"}}}) == 400);
  CHECK(refused({.version = 10, .fields = {{"Transfer-Encoding", "chunked"}}}) == 400);
  CHECK(refused({.fields = {{"Content-Length", "+10"}}}) == 400);
  CHECK(refused({.fields = {{"Content-Length", "1 0"}}}) == 400);
  CHECK(refused({.fields = {{"Content-Length", ""}}}) == 400);
  CHECK(refused({.fields = {{"Host", "other"}}}) == 400);
  CHECK(refused({.fields = {{"Authorization", "a"}, {"authorization", "b"}}}) == 400);
  CHECK(refused({.fields = {{"x-api-key", "a"}, {"X-Api-Key", "a"}}}) == 400);
  CHECK(refuse_head({}, kMaxBody)->status == 400);  // no Host
}

TEST_CASE("http head: a body that is too long is refused before it is read") {
  CHECK(refused({.fields = {{"Content-Length", "1000"}}}) == 0);
  CHECK(refused({.fields = {{"Content-Length", "1001"}}}) == 413);
  CHECK(refused({.fields = {{"Content-Length", "99999999999999999999999"}}}) == 413);
}

TEST_CASE("http head: the key is that of one Authorization, or else of x-api-key") {
  CHECK(Head{.fields = {{"authorization", "bearer lh-1"}}}.api_key() == "lh-1");
  CHECK(Head{.fields = {{"Authorization", "Basic lh-1"}}}.api_key().empty());
  CHECK(Head{.fields = {{"Authorization", "Bearer "}}}.api_key().empty());
  CHECK(Head{}.api_key().empty());
  CHECK(Head{.fields = {{"X-Api-Key", "lh-2"}}}.api_key() == "lh-2");
  const auto both = [](const char* value) {
    return Head{.fields = {{"x-api-key", "lh-2"}, {"Authorization", value}}};
  };
  CHECK(both("Bearer lh-1").api_key() == "lh-1");
  CHECK(both("Basic lh-1").api_key() == "lh-2");
  CHECK(Head{.target = "/v1/models?x=1"}.path() == "/v1/models");
}
