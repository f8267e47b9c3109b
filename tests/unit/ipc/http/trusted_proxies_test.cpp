// Whose requests a proxy sends.
#include <catch2/catch.hpp>

#include "ipc/http/trusted_proxies.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

TrustedProxies trusting(const std::vector<std::string>& texts) {
  return TrustedProxies::parse(texts).value();
}

bool is_refused(const std::string& text) {
  const auto parsed = TrustedProxies::parse(std::vector{text});
  return !parsed && parsed.error().code == Errc::BadRequest && parsed.error().detail.contains(text);
}

/// The client of a request of 127.0.0.1 with these headers, where 127.0.0.1 and 10.0.0.0/8 are
/// trusted.
std::string client_behind(const std::vector<std::string>& forwarded) {
  static const TrustedProxies proxies = trusting({"127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"});
  Head head;
  for (const std::string& value : forwarded) head.fields.emplace_back("x-forwarded-FOR", value);
  return proxies.client_of("127.0.0.1", head);
}

}  // namespace

TEST_CASE("trusted proxies: addresses, networks and users are trusted, others are not") {
  const TrustedProxies proxies =
      trusting({"192.0.2.7", "10.0.0.0/9", "2001:db8::/33", "fd00::1", "uid:33"});
  for (const char* peer : {"192.0.2.7", "10.127.255.255", "2001:db8:7fff::1", "fd00::1", "uid:33"})
    CHECK(proxies.trusts(peer));
  for (const char* peer : {"192.0.2.8", "10.128.0.0", "2001:db8:8000::1", "fd00::2", "uid:3",
                           "uid:333", "", "::", "127.0.0.1"})
    CHECK_FALSE(proxies.trusts(peer));
  CHECK(trusting({"0.0.0.0/0"}).trusts("203.0.113.9"));
  CHECK_FALSE(trusting({"0.0.0.0/0"}).trusts("2001:db8::1"));
  CHECK(trusting({"::ffff:10.0.0.1"}).trusts("10.0.0.1"));
  CHECK_FALSE(TrustedProxies().trusts("127.0.0.1"));
}

TEST_CASE("trusted proxies: what is not an address or network is refused") {
  for (const char* text : {"", "localhost", "10.0.0", "10.0.0.0/33", "::/129", "10.0.0.0/", "/8",
                           "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/8x", "uid:", "uid:x", "uid:-1",
                           "fe80::1%eth0", "[::1]", "127.0.0.1:80", "10.0.0.1/8", "2001:db8::1/32"})
    CHECK(is_refused(text));
}

TEST_CASE("trusted proxies: the client is the last address that is not a trusted proxy's") {
  CHECK(client_behind({"203.0.113.9"}) == "203.0.113.9");
  CHECK(client_behind({"203.0.113.9, 198.51.100.2"}) == "198.51.100.2");
  CHECK(client_behind({"203.0.113.9 ,\t10.1.2.3,127.0.0.1"}) == "203.0.113.9");
  CHECK(client_behind({"203.0.113.9", "198.51.100.2", "10.1.2.3"}) == "198.51.100.2");
  CHECK(client_behind({"10.9.9.9, 10.1.2.3"}) == "10.9.9.9");  // clients of the own network
  CHECK(client_behind({"203.0.113.9:5124"}) == "203.0.113.9");
  CHECK(client_behind({"2001:DB8:2::1"}) == "2001:db8:2::1");
  CHECK(client_behind({"2001:db8:2::1, 2001:db8:1::5"}) == "2001:db8:2::1");
  CHECK(client_behind({"[2001:db8:2::1]:443"}) == "2001:db8:2::1");
  CHECK(client_behind({"[2001:db8:2::1]"}) == "2001:db8:2::1");
  CHECK(client_behind({"::ffff:203.0.113.9"}) == "203.0.113.9");
  CHECK(client_behind({}) == "127.0.0.1");
}

TEST_CASE("trusted proxies: a malformed entry of a proxy leaves the proxy's own address") {
  for (const char* header :
       {"", ",", "unknown", "203.0.113.9,", "203.0.113.9, unknown", "203.0.113.999", "203.0.113",
        "203.0.113.9:", "203.0.113.9:x", "203.0.113.9:123456", "[2001:db8:2::1", "[203.0.113.9]",
        "[2001:db8:2::1]x", "[2001:db8:2::1]443", "fe80::1%eth0", "\"203.0.113.9\"",
        "203.0.113.9 198.51.100.2", "unknown, 10.1.2.3"}) {
    INFO(header);
    CHECK(client_behind({header}) == "127.0.0.1");
  }
}

TEST_CASE("trusted proxies: what the client wrote before its own address changes nothing") {
  CHECK(client_behind({"unknown, 203.0.113.9"}) == "203.0.113.9");
  CHECK(client_behind({",,,, 203.0.113.9"}) == "203.0.113.9");
  CHECK(client_behind({"garbage", "203.0.113.9, 10.1.2.3"}) == "203.0.113.9");
  CHECK(client_behind({std::string(15'000, ',') + "203.0.113.9"}) == "203.0.113.9");
  CHECK(client_behind({std::string(15'000, 'a')}) == "127.0.0.1");
  std::string all_trusted = "10.0.0.1";
  while (all_trusted.size() < 15'000) all_trusted += ",10.0.0.2";
  CHECK(client_behind({all_trusted}) == "10.0.0.1");
}

TEST_CASE("trusted proxies: other peers and other headers are not believed") {
  const TrustedProxies proxies = trusting({"127.0.0.1", "uid:33"});
  Head head;
  head.fields.emplace_back("X-Forwarded-For", "203.0.113.9");
  CHECK(proxies.client_of("127.0.0.2", head) == "127.0.0.2");
  CHECK(proxies.client_of("uid:1000", head) == "uid:1000");
  CHECK(proxies.client_of("uid:33", head) == "203.0.113.9");
  CHECK(TrustedProxies().client_of("127.0.0.1", head) == "127.0.0.1");
  Head other;
  other.fields.emplace_back("Forwarded", "for=203.0.113.9");
  other.fields.emplace_back("X-Real-IP", "203.0.113.9");
  CHECK(proxies.client_of("127.0.0.1", other) == "127.0.0.1");
}

TEST_CASE("trusted proxies: a source is an IPv4 address, the /64 of IPv6, or a user") {
  CHECK(source_of("203.0.113.9") == "203.0.113.9");
  CHECK(source_of("2001:db8:1:2:3:4:5:6") == "2001:db8:1:2::");
  CHECK(source_of("uid:1000") == "uid:1000");
  const auto address = [](const char* text) { return boost::asio::ip::make_address(text); };
  CHECK(peer_address(address("::ffff:203.0.113.9")) == "203.0.113.9");
  CHECK(peer_address(address("fe80::1%1")) == "fe80::1");
}
