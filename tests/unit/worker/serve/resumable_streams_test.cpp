// The streams of resumable requests: kept, read from any position, bounded by tenant, forgotten.
#include "worker/serve/resumable_streams.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <nlohmann/json.hpp>

#include "common/clock.hpp"
#include "tests/unit/ipc/control/peer_fixture.hpp"
#include "worker/kv/request_ids.hpp"

namespace leasehold::testing {
namespace {

const RequestId kRequest{"ann/r"};

wire::TokenEmitted token(std::uint32_t position, std::string text = "x") {
  return {.request = {"r"},
          .token = static_cast<std::int32_t>(position),
          .position = position,
          .text = std::move(text)};
}

struct StreamsFixture {
  void begin(const RequestId& id = kRequest) {
    REQUIRE(streams.begin(id, {.submitted = {.request = to_client_request_id(id)}}));
  }
  void add(std::uint32_t count, const std::string& text = "x", const RequestId& id = kRequest) {
    for (std::uint32_t i = 0; i < count && streams.find(id) != nullptr; ++i) {
      const auto next = static_cast<std::uint32_t>(streams.find(id)->tokens.size());
      streams.add(id, token(next, text));
    }
  }
  void end(const RequestId& id = kRequest) {
    streams.end(id, {.request = to_client_request_id(id), .reason = "EndOfSequence"}, true);
  }
  void end_lease(LeaseId lease) { streams.lease_ended(lease, word_of(lease)); }
  LeaseWord word_of(LeaseId lease) const {
    const auto found = ended.find(lease);
    if (found == ended.end()) return LeaseWord::make(1, LeaseState::Live);
    return LeaseWord::make(1, LeaseState::Revoked, found->second);
  }
  std::vector<std::uint32_t> positions() const {
    std::vector<std::uint32_t> positions;
    for (const auto& [method, payload] : peers.right_seen.notifications) {
      if (method == wire::TokenEmitted::kMethod) positions.push_back(payload.body.at("position"));
    }
    return positions;
  }
  std::size_t ends() const {
    return std::ranges::count(peers.right_seen.notifications, wire::RequestCompleted::kMethod,
                              [](const auto& each) { return std::string_view(each.first); });
  }
  std::vector<std::uint32_t> range(std::uint32_t from, std::uint32_t to) const {
    std::vector<std::uint32_t> all;
    for (; from < to; ++from) all.push_back(from);
    return all;
  }

  PeerPairFixture peers;
  ManualClock clock;
  std::map<LeaseId, RevokeReason> ended;
  std::vector<RequestId> abandoned;
  ResumableStreams streams{peers.io, clock, [this](LeaseId lease) { return word_of(lease); },
                           [this](const RequestId& id) { abandoned.push_back(id); },
                           [](const RequestId&) {}};
};

}  // namespace

TEST_CASE("resumable streams: a reader gets each position behind its own once, then the end") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.add(5);
  fixture.streams.attach(kRequest, {fixture.peers.left}, 2);
  fixture.add(3);
  fixture.end();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  CHECK(fixture.positions() == fixture.range(2, 8));
}

TEST_CASE("resumable streams: another reader takes the stream over") {
  StreamsFixture fixture;
  PeerPairFixture others;
  fixture.begin();
  fixture.streams.attach(kRequest, {others.left}, 0);
  fixture.add(2);
  fixture.streams.attach(kRequest, {fixture.peers.left}, 1);
  fixture.add(2);
  fixture.end();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  run_until(others.io, [&] { return others.right_seen.notifications.size() == 3; });
  others.io.poll();
  CHECK(fixture.positions() == fixture.range(1, 4));
  REQUIRE(others.right_seen.notifications.size() == 3);
  const auto end =
      wire::RequestCompleted::from_json(others.right_seen.notifications[2].second.body);
  REQUIRE(end);
  CHECK(end->reason == "RequestIdConflict");
  CHECK(end->emitted_tokens == 2);
}

TEST_CASE("resumable streams: a reader whose lease has ended gets Revoked, and the text goes on") {
  const LeaseId texts{1, 1}, readers{2, 1};
  StreamsFixture fixture;
  PeerPairFixture others;
  REQUIRE(fixture.streams.begin(kRequest, {.lease = texts, .submitted = {.request = {"r"}}}));
  fixture.streams.attach(kRequest, {others.left, readers}, 0);
  fixture.add(2);
  fixture.ended[readers] = RevokeReason::Operator;
  SECTION("with the next token") {}
  SECTION("without another token") {
    fixture.end_lease(readers);
  }
  SECTION("when the text has ended and is still being read") {
    fixture.end();
  }
  const bool is_over = fixture.streams.find(kRequest)->end.has_value();
  if (!is_over) fixture.add(2);
  run_until(others.io, [&] { return others.right_seen.notifications.size() >= 3; });
  others.io.poll();
  REQUIRE(others.right_seen.notifications.size() == 3);
  const auto end =
      wire::RequestCompleted::from_json(others.right_seen.notifications.back().second.body);
  REQUIRE(end);
  CHECK(end->reason == "Revoked");
  CHECK(end->lease == readers);
  CHECK(end->revoke_reason == "operator");
  CHECK(end->emitted_tokens == 2);
  CHECK(fixture.abandoned.empty());

  fixture.streams.attach(kRequest, {fixture.peers.left, texts}, 2);
  if (!is_over) fixture.end();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  CHECK(fixture.positions() == fixture.range(2, is_over ? 2 : 4));
}

TEST_CASE("resumable streams: a reader whose lease was released, as one that drains, reads on") {
  const LeaseId texts{1, 1}, readers{2, 1};
  StreamsFixture fixture;
  REQUIRE(fixture.streams.begin(kRequest, {.lease = texts, .submitted = {.request = {"r"}}}));
  fixture.streams.attach(kRequest, {fixture.peers.left, readers}, 0);
  fixture.ended[readers] = RevokeReason::Released;
  fixture.end_lease(readers);
  fixture.add(3);
  fixture.ended[readers] = RevokeReason::None;  // the slot has another lease
  fixture.add(2);
  fixture.end();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  CHECK(fixture.positions() == fixture.range(0, 5));
}

TEST_CASE("resumable streams: the lease of a move is not that of a reader that came meanwhile") {
  const LeaseId texts{1, 1}, readers{2, 1}, next{3, 1};
  StreamsFixture fixture;
  PeerPairFixture others;
  REQUIRE(fixture.streams.begin(kRequest, {.lease = texts, .submitted = {.request = {"r"}}}));
  fixture.streams.attach(kRequest, {others.left, texts}, 0);
  fixture.streams.attach(kRequest, {fixture.peers.left, readers}, 0);
  fixture.streams.read_under(kRequest, {others.left, next});
  fixture.ended[readers] = RevokeReason::Operator;
  fixture.add(1);
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  CHECK(fixture.positions().empty());
}

TEST_CASE("resumable streams: the reader of a text that ends with its lease gets every token") {
  const LeaseId lease{1, 1}, next{2, 1};
  StreamsFixture fixture;
  REQUIRE(fixture.streams.begin(kRequest, {.lease = lease, .submitted = {.request = {"r"}}}));
  fixture.streams.attach(kRequest, {fixture.peers.left, lease}, 0);
  SECTION("the lease of both is revoked") {}
  SECTION("the text has moved, and the earlier lease ends") {
    fixture.streams.read_under(kRequest, {fixture.peers.left, next});
    fixture.streams.moved(kRequest, next);
  }
  fixture.ended[lease] = RevokeReason::Operator;
  fixture.end_lease(lease);
  fixture.add(3);
  fixture.streams.end(kRequest, {.request = {"r"}, .reason = "Revoked"}, false);
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  CHECK(fixture.positions() == fixture.range(0, 3));
}

TEST_CASE("resumable streams: a reader that stalls pauses, and its output stays bounded") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.streams.attach(kRequest, {fixture.peers.left}, 0);
  const std::string text(1000, 'x');
  fixture.add(5000, text);  // nothing is read meanwhile
  CHECK(fixture.peers.left->queued_bytes() < ResumableStreams::kMaxQueuedBytes + 2 * text.size());
  fixture.end();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  CHECK(fixture.positions() == fixture.range(0, 5000));
  CHECK(fixture.abandoned.empty());
}

TEST_CASE("resumable streams: after the grace it is forgotten, and what runs is abandoned") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.streams.detach(kRequest);
  fixture.begin({"ann/ended"});
  fixture.end({"ann/ended"});
  fixture.begin({"ann/read"});
  fixture.streams.attach({"ann/read"}, {fixture.peers.left}, 0);

  fixture.clock.advance(ResumableStreams::kResultGrace - std::chrono::milliseconds(1));
  fixture.streams.forget_expired();
  CHECK(fixture.streams.find(kRequest) != nullptr);
  CHECK(fixture.streams.find({"ann/ended"}) != nullptr);
  CHECK(fixture.abandoned.empty());

  fixture.clock.advance(std::chrono::milliseconds(1));
  fixture.streams.forget_expired();
  CHECK(fixture.streams.find(kRequest) == nullptr);
  CHECK(fixture.streams.find({"ann/ended"}) == nullptr);
  CHECK(fixture.streams.find({"ann/read"}) != nullptr);
  CHECK(fixture.abandoned == std::vector{kRequest});
}

TEST_CASE("resumable streams: the grace begins again when a reader leaves") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.streams.attach(kRequest, {fixture.peers.left}, 0);
  fixture.clock.advance(ResumableStreams::kResultGrace);
  fixture.streams.detach(kRequest);
  fixture.streams.forget_expired();
  CHECK(fixture.streams.find(kRequest) != nullptr);
  fixture.clock.advance(ResumableStreams::kResultGrace);
  fixture.streams.forget_expired();
  CHECK(fixture.abandoned == std::vector{kRequest});
}

TEST_CASE(
    "resumable streams: a reader that stalls beyond the grace gets QueueFull after its tokens") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.streams.attach(kRequest, {fixture.peers.left}, 0);
  fixture.add(500, std::string(1000, 'x'));
  fixture.end();
  fixture.clock.advance(ResumableStreams::kResultGrace);
  fixture.streams.forget_expired();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  const auto& end = fixture.peers.right_seen.notifications.back().second.body;
  CHECK(end.at("reason") == "QueueFull");
  CHECK_THAT(end.at("detail").get<std::string>(), Catch::Contains("waited a minute"));
  CHECK(end.at("emitted_tokens") == fixture.positions().size());
  CHECK(fixture.positions().size() < 500);
}

TEST_CASE("resumable streams: a tenant without room loses its oldest ended stream, no other's") {
  StreamsFixture fixture;
  const std::string text(64 << 10, 'x');
  fixture.begin({"bob/ended"});
  fixture.end({"bob/ended"});
  for (const char* id : {"ann/first", "ann/second"}) {
    fixture.begin({id});
    fixture.add(200, text, {id});
    fixture.end({id});
    fixture.clock.advance(std::chrono::seconds(1));
  }
  fixture.begin();
  while (fixture.streams.find({"ann/first"}) != nullptr && fixture.abandoned.empty())
    fixture.add(1, text);
  CHECK(fixture.streams.find({"ann/second"}) != nullptr);
  CHECK(fixture.streams.find({"bob/ended"}) != nullptr);
  CHECK(fixture.abandoned.empty());
}

TEST_CASE("resumable streams: a submitter whose text is lost gets QueueFull, not a conflict") {
  StreamsFixture fixture;
  fixture.begin();
  CHECK(fixture.streams.check_first_reader(kRequest));
  const std::string text(64 << 10, 'x');
  while (fixture.streams.find(kRequest) != nullptr) fixture.add(1, text);
  CHECK(fixture.streams.check_first_reader(kRequest).error().code == Errc::QueueFull);

  fixture.begin({"bob/r"});
  fixture.streams.attach({"bob/r"}, {fixture.peers.left}, 0);
  CHECK(fixture.streams.check_first_reader({"bob/r"}).error().code == Errc::RequestIdConflict);
}

TEST_CASE("resumable streams: what has no room ends with QueueFull, and is abandoned") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.streams.attach(kRequest, {fixture.peers.left}, 0);
  const std::string text(64 << 10, 'x');
  while (fixture.streams.find(kRequest) != nullptr) {
    fixture.add(1, text);
    fixture.peers.io.poll();
  }
  CHECK(fixture.abandoned == std::vector{kRequest});
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  const auto& end = fixture.peers.right_seen.notifications.back().second.body;
  CHECK(end.at("reason") == "QueueFull");
  CHECK(end.at("emitted_tokens") == fixture.positions().size());
  // A tenant alone gets half.
  CHECK(fixture.positions().size() < ResumableStreams::kMaxBytes / 2 / text.size() + 2);
  fixture.begin({"bob/r"});
  CHECK(fixture.streams.find({"bob/r"}) != nullptr);
}

TEST_CASE("resumable streams: a submission without room leaves the earlier text as it was") {
  StreamsFixture fixture;
  const std::string text(64 << 10, 'x');
  fixture.begin();
  fixture.end();
  fixture.begin({"ann/running"});
  Result<void> begun;
  while (true) {
    fixture.add(1, text, {"ann/running"});
    REQUIRE(fixture.abandoned.empty());
    REQUIRE(fixture.streams.find(kRequest) != nullptr);
    begun = fixture.streams.begin(kRequest, {.submitted = {.request = {"r"}}});
    if (!begun) break;
    fixture.add(3);
    fixture.end();
  }
  CHECK(begun.error().code == Errc::QueueFull);
  const ResumableStreams::Stream* kept = fixture.streams.find(kRequest);
  REQUIRE(kept != nullptr);
  CHECK(kept->tokens.size() == 3);
  CHECK(kept->end.has_value());
}

TEST_CASE("resumable streams: the text that a submission replaces counts as free room") {
  StreamsFixture fixture;
  const std::string text(64 << 10, 'x');
  for (int i = 0; i < 3; ++i) {
    ResumableStreams::Stream stream{.submitted = {.request = {"r"}}};
    for (std::uint32_t position = 0; position < 400; ++position)
      stream.tokens.push_back(token(position, text));  // more than half of the tenant's share
    CHECK(fixture.streams.begin(kRequest, std::move(stream)));
    fixture.end();
  }
}

TEST_CASE("resumable streams: a reader of a replaced text learns why it ends") {
  StreamsFixture fixture;
  fixture.begin();
  fixture.streams.attach(kRequest, {fixture.peers.left}, 0);
  fixture.add(500, std::string(1000, 'x'));  // more than the reader has taken
  fixture.end();
  fixture.begin();
  run_until(fixture.peers.io, [&] { return fixture.ends() == 1; });
  const auto& end = fixture.peers.right_seen.notifications.back().second.body;
  CHECK(end.at("reason") == "RequestIdConflict");
  CHECK(end.at("detail") == "a new submission uses this request id");
}

}  // namespace leasehold::testing
