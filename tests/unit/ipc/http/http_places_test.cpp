// The places of the HTTP server, and the pace of its bodies.
#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "ipc/http/body_rate_limiter.hpp"
#include "ipc/http/http_places.hpp"
#include "ipc/http/known_keys.hpp"

using namespace leasehold;
using namespace leasehold::http;
using namespace std::chrono_literals;

TEST_CASE("http places: a source beyond its share loses its oldest connection, others none") {
  Places places({.unauthenticated_places = 4, .tenant_places = 4});
  CHECK_FALSE(places.connected(1, "other").displaced);
  CHECK_FALSE(places.connected(2, "flood").displaced);
  std::size_t displaced = 0;
  for (Places::ConnectionId id = 3; id < 50; ++id) {
    const auto admitted = places.connected(id, "flood");
    CHECK(admitted.accepted);
    if (!admitted.displaced) continue;
    ++displaced;
    CHECK(*admitted.displaced != 1);
  }
  CHECK(displaced > 40);
  CHECK(places.connected(60, "third").accepted);
}

TEST_CASE("http places: connections with a key need no place of their source") {
  Places places({.unauthenticated_places = 4, .tenant_places = 8});
  for (Places::ConnectionId id = 1; id <= 4; ++id) {
    places.connected(id, "one");
    CHECK(places.authenticated(id, {"acme"}).has_value());
  }
  CHECK_FALSE(places.connected(5, "one").displaced);
  places.connected(6, "two");
  CHECK(places.authenticated(5, {"acme"}).error().code == Errc::QueueFull);
  CHECK(places.authenticated(6, {"b"}).has_value());
  places.closed(1);
  places.closed(1);
  CHECK(places.authenticated(5, {"acme"}).has_value());
}

TEST_CASE("http places: a connection passes to the tenant of the key that it shows last") {
  Places places({.unauthenticated_places = 4, .tenant_places = 4});
  places.connected(1, "proxy");
  places.connected(2, "proxy");
  for (int i = 0; i < 10; ++i) {
    REQUIRE(places.authenticated(1, {"acme"}).has_value());
    REQUIRE(places.authenticated(1, {"b"}).has_value());
  }
  CHECK(places.authenticated(2, {"b"}).has_value());
  places.connected(3, "proxy");
  CHECK(places.authenticated(3, {"b"}).error().code == Errc::QueueFull);
  places.closed(1);
  CHECK(places.authenticated(3, {"b"}).has_value());
}

TEST_CASE("http places: a proxy's connection belongs to the client that it names") {
  Places places({.unauthenticated_places = 8, .key_checks = {.per_second = 1, .burst = 1}});
  const TimePoint now{1'000'000'000};
  places.connected(1, "proxy");
  places.connected(2, "proxy");
  CHECK(places.note_source(1, "flood").accepted);
  CHECK(places.note_source(2, "calm").accepted);
  CHECK(places.pace_key(1, now) == Duration::zero());
  CHECK(places.pace_key(1, now) > Duration::zero());
  CHECK(places.pace_key(2, now) == Duration::zero());
  // The client's own share is full, so it loses its oldest connection; others keep theirs.
  std::vector<Places::ConnectionId> displaced;
  for (Places::ConnectionId id = 3; id <= 9; ++id) {
    REQUIRE(places.connected(id, "proxy").accepted);
    const auto admitted = places.note_source(id, "flood");
    REQUIRE(admitted.accepted);
    if (admitted.displaced) displaced.push_back(*admitted.displaced);
  }
  REQUIRE_FALSE(displaced.empty());
  CHECK(displaced.front() == 1);
  CHECK(std::ranges::find(displaced, 2) == displaced.end());
  // A tenant's connection stays the tenant's; only the pace of keys follows the client.
  REQUIRE(places.authenticated(2, {"acme"}).has_value());
  CHECK(places.note_source(2, "flood").accepted);
  CHECK(places.pace_key(2, now) > Duration::zero());
  CHECK(places.take_body(2, 1).has_value());
  places.closed(2);
  CHECK_FALSE(places.note_source(2, "flood").accepted);
}

TEST_CASE("http places: bodies are charged to the tenant until the request is over") {
  Places places({.unauthenticated_places = 8, .tenant_places = 8, .body_bytes = 1000});
  for (Places::ConnectionId id = 1; id <= 3; ++id) {
    places.connected(id, "one");
    CHECK(places.take_body(id, 1).error().code == Errc::QueueFull);  // no key yet
    REQUIRE(places.authenticated(id, {id == 3 ? "b" : "acme"}).has_value());
  }
  CHECK(places.take_body(1, 400).has_value());
  CHECK(places.take_body(2, 101).error().code == Errc::QueueFull);
  CHECK(places.take_body(3, 500).error().code == Errc::QueueFull);
  CHECK(places.take_body(3, 200).has_value());
  places.release_bodies(1);
  places.release_bodies(1);
  CHECK(places.take_body(2, 400).has_value());
  places.closed(2);
  CHECK(places.take_body(1, 400).has_value());
  CHECK(places.take_body(1, 0).has_value());
}

TEST_CASE("http places: a key that is valid does not count as one that was tried") {
  Places places({.key_checks = {.per_second = 1, .burst = 1}});
  places.connected(1, "one");
  const TimePoint now{1'000'000'000};
  for (int i = 0; i < 5; ++i) {
    CHECK(places.pace_key(1, now) == Duration::zero());
    CHECK(places.pace_key(1, now) > Duration::zero());
    REQUIRE(places.authenticated(1, {"acme"}).has_value());
  }
}

TEST_CASE("http places: a known key, which was not paced, gives its source no further guess") {
  Places places({.key_checks = {.per_second = 1, .burst = 1}});
  places.connected(1, "one");
  places.connected(2, "one");
  const TimePoint now{1'000'000'000};
  REQUIRE(places.pace_key(1, now) == Duration::zero());
  for (int i = 0; i < 5; ++i) REQUIRE(places.authenticated(2, {"acme"}).has_value());
  CHECK(places.pace_key(1, now) > Duration::zero());
}

TEST_CASE("http known keys: a key is known from its acceptance to its refusal, within a bound") {
  KnownKeys keys;
  CHECK_FALSE(keys.contains("a"));
  keys.accepted("a", {"acme"});
  keys.accepted("b", {"acme"});
  CHECK(keys.contains("a"));
  CHECK_FALSE(keys.contains("A"));
  keys.refused("a");
  keys.refused("never seen");
  CHECK_FALSE(keys.contains("a"));
  CHECK(keys.contains("b"));
  for (std::size_t i = 0; i <= KnownKeys::kMaxKeys; ++i)
    keys.accepted(std::to_string(i), {"flood"});
  CHECK(keys.contains("b"));
  CHECK_FALSE(keys.contains("0"));
}

TEST_CASE("http places: keys of one source are checked at its rate") {
  Places places({.key_checks = {.per_second = 1, .burst = 2}});
  places.connected(1, "one");
  places.connected(2, "two");
  const TimePoint now{1'000'000'000};
  CHECK(places.pace_key(1, now) == Duration::zero());
  CHECK(places.pace_key(1, now) == Duration::zero());
  CHECK(places.pace_key(1, now) == 1s);
  CHECK(places.pace_key(2, now) == Duration::zero());
  CHECK(places.pace_key(1, now + 1s) == Duration::zero());
}

TEST_CASE(
    "http pace: a tenant's bodies beyond 2 MiB at once wait for each other, not for others'") {
  BodyRateLimiter pace;
  const TenantId ann{"ann"}, bob{"bob"};
  const TimePoint now{1'000'000'000};
  constexpr std::size_t kBody = (512 << 10) - 1;  // weighs 512
  for (int i = 0; i < 4; ++i) CHECK(pace.reserve(ann, kBody, now) == Duration::zero());
  CHECK(pace.reserve(ann, kBody, now) == std::chrono::milliseconds(250));
  CHECK(pace.reserve(ann, kBody, now) == std::chrono::milliseconds(500));
  CHECK(pace.reserve(bob, kBody, now) == Duration::zero());
  CHECK(pace.reserve(ann, 0, now + std::chrono::seconds(2)) == Duration::zero());
}
