// The ids of a stream's events, and which of them a client that comes back gets.
#include <catch2/catch.hpp>

#include "worker/http/api/event_ids.hpp"

using namespace leasehold;
using namespace leasehold::http;

namespace {

using Texts = std::vector<std::string>;

constexpr const char* kComputed = "sha256:00/int8/f16/1 with 512 tokens of context";
constexpr const char* kOtherwise = "sha256:00/int8/f16/1 with 100 tokens of context";

constexpr std::int64_t kCreated = 1'795'939'417;

Result<EventIds> ids_after(const std::optional<std::string>& last_event_id) {
  return EventIds::after(last_event_id, kComputed, kCreated);
}

/// "12.1" as this worker numbers it.
std::string full_id(const std::string& id) {
  auto ids = ids_after(std::nullopt);
  ServerEvents events{{.data = "{}"}};
  ids->number(0, events);
  return id + events[0].id.substr(events[0].id.find('-'));
}

/// The events of a text: two of its first token, one of the second, none of the third, two of its
/// end. As "ID DATA".
Texts sent_after(const std::optional<std::string>& last_event_id) {
  auto ids = ids_after(last_event_id);
  REQUIRE(ids);
  Texts sent;
  const auto add = [&](std::uint32_t position, const Texts& data) {
    ServerEvents events;
    for (const std::string& each : data) events.push_back({.data = each});
    ids->number(position, events);
    for (const ServerEvent& event : events)
      sent.push_back(event.id.substr(0, event.id.find('-')) + " " + event.data);
  };
  add(0, {"role", "a"});
  add(1, {"b"});
  add(2, {});
  add(3, {"stop"});
  add(3, {"usage"});
  return sent;
}

const Texts kAll{"0.0 role", "0.1 a", "1.0 b", "3.0 stop", "3.1 usage"};

}  // namespace

TEST_CASE("event ids: a client that has any event gets all later ones, and no other") {
  CHECK(sent_after(std::nullopt) == kAll);
  for (std::size_t had = 1; had <= kAll.size(); ++had) {
    const std::string& last = kAll[had - 1];
    CHECK(sent_after(full_id(last.substr(0, last.find(' ')))) ==
          Texts(kAll.begin() + static_cast<std::ptrdiff_t>(had), kAll.end()));
  }
}

TEST_CASE("event ids: the last event of a response has an id, and the end of a stream has none") {
  auto ids = ids_after(std::nullopt);
  REQUIRE(ids);
  ServerEvents events{{.data = "{}", .name = "response.completed"}, {.data = "[DONE]"}};
  ids->number(7, events);
  REQUIRE(events.size() == 2);
  CHECK(events[0].id == full_id("7.0"));
  CHECK(events[1].id.empty());
  auto again = ids_after(full_id("7.0"));
  REQUIRE(again);
  again->number(7, events);
  REQUIRE(events.size() == 1);
  CHECK(events[0].data == "[DONE]");
}

TEST_CASE("event ids: an event of a text that was computed otherwise is a conflict") {
  const std::string had = full_id("4.0");
  CHECK(EventIds::after(had, kComputed, kCreated));

  const auto refused = EventIds::after(had, kOtherwise, kCreated);

  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::RequestIdConflict);
  CHECK_THAT(refused.error().detail, Catch::Matchers::Contains(kOtherwise));
}

TEST_CASE("event ids: an id has the time of its text, and one of an older worker has none") {
  const std::string id = full_id("4.0");
  CHECK(created_in(id) == kCreated);
  const std::string older = id.substr(0, id.rfind('-'));
  CHECK_FALSE(created_in(older));
  CHECK(ids_after(older));
  for (const char* wrong : {"-", "-x", "-1x", "--1", "-99999999999", "-1-1"}) {
    CHECK_FALSE(created_in(older + wrong));
    CHECK(ids_after(older + wrong).error().code == Errc::BadRequest);
  }
}

TEST_CASE("event ids: anything else is refused, and a position beyond the end is noticed") {
  for (const char* wrong :
       {"", "x", "-1", "1x", ".", "1.", ".1", "1.x", "1.2.3", "4294967296", "1"})
    CHECK(ids_after(full_id(wrong)).error().code == Errc::BadRequest);
  for (const char* unnamed : {"1.2", "1.2-", "1.2-0123456", "1.2-0123456X", "1.2-012345678"})
    CHECK(ids_after(unnamed).error().code == Errc::BadRequest);
  CHECK(ids_after(full_id("4.0"))->is_beyond(3));
  CHECK_FALSE(ids_after(full_id("3.7"))->is_beyond(3));
  CHECK_FALSE(ids_after(std::nullopt)->is_beyond(0));
}
