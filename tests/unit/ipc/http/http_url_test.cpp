#include "ipc/http/http_url.hpp"

#include <catch2/catch.hpp>
#include <string>

namespace leasehold::http {

TEST_CASE("http url: host, port and path are read") {
  CHECK(Url::parse("http://127.0.0.1:8765") ==
        Url{.host = "127.0.0.1", .port = "8765", .path = ""});
  CHECK(Url::parse("http://index.local:80/v1/pilot/") ==
        Url{.host = "index.local", .port = "80", .path = "/v1/pilot"});
  const auto ipv6 = Url::parse("http://[::1]:65535/");
  CHECK(ipv6 == Url{.host = "::1", .port = "65535", .path = ""});
  CHECK(ipv6->authority() == "[::1]:65535");
  CHECK(Url::parse("http://index.local:80/v1/pilot/")->text() == "http://index.local:80/v1/pilot");
}

TEST_CASE("http url: only localhost and loopback addresses are on this machine") {
  for (const char* host : {"localhost", "LocalHost", "127.0.0.1", "127.9.8.7", "[::1]"})
    CHECK(Url::parse(std::string("http://") + host + ":1")->is_on_this_machine());
  for (const char* host : {"10.0.0.1", "localhost.example", "127.0.0.1.example", "127.1", "[::2]"})
    CHECK_FALSE(Url::parse(std::string("http://") + host + ":1")->is_on_this_machine());
}

TEST_CASE("http url: text that is not such a URL is refused with what to write") {
  for (const std::string text : {"",
                                 "nonsense",
                                 "127.0.0.1:80",
                                 "https://a:1",
                                 "HTTP://a:1",
                                 "http://",
                                 "http://a",
                                 "http://:80",
                                 "http://a:",
                                 "http://a:0",
                                 "http://a:65536",
                                 "http://a:80x",
                                 "http://a:-1",
                                 "http://user@a:80",
                                 "http://u:p@a:80",
                                 "http://a:80/x?y",
                                 "http://a:80/#f",
                                 "http://a:80/x y",
                                 "http://a b:80",
                                 "http://a:80/\r\nHost: b",
                                 "http://[::1:80",
                                 "http://::1:80",
                                 "http://a\\b:80"}) {
    INFO(text);
    const auto parsed = Url::parse(text);
    REQUIRE_FALSE(parsed);
    CHECK(parsed.error().code == Errc::BadRequest);
    CHECK(parsed.error().detail.find("use http://host:port") != std::string::npos);
  }
  CHECK_FALSE(Url::parse("http://a:80/" + std::string(2'000, 'x')));
  CHECK_FALSE(Url::parse("http://" + std::string(300, 'x') + ":80"));
}

TEST_CASE("http url: percent_decoded replaces whole escapes only") {
  CHECK(percent_decoded("a%20b%2Fc") == "a b/c");
  CHECK(percent_decoded("100%, %2, %zz") == "100%, %2, %zz");
}

TEST_CASE("http url: percent_encoded leaves no byte that ends a field of a query") {
  CHECK(percent_encoded("file-a_1.~") == "file-a_1.~");
  CHECK(percent_encoded("a&b=c \r\n\xff") == "a%26b%3Dc%20%0D%0A%FF");
  CHECK(query_value("after=" + percent_encoded("a&b=%41"), "after") == "a&b=%41");
}

}  // namespace leasehold::http
