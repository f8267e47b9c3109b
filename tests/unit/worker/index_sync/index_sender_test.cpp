#include "worker/index_sync/index_sender.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <latch>
#include <map>
#include <memory>
#include <string>

#include "tests/support/index_server.hpp"
#include "tests/support/no_more_threads.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"
#include "worker/index_sync/kv_index_sync.hpp"

namespace leasehold {
namespace {

using testing::IndexMode;
using testing::IndexServer;
using testing::NoMoreThreads;
using Evicted = std::map<std::string, int>;
using std::chrono::milliseconds;

const TenantId kAnn{"ann"};
constexpr milliseconds kStopTimeout = std::chrono::minutes(1);

IndexSenderConfig config_of(const IndexServer& server) {
  return {.url = http::Url::parse(server.url("/v1")).value(),
          .exchange = {.timeout = std::chrono::minutes(1)},
          .first_retry = milliseconds(1),
          .max_retry = milliseconds(4)};
}

std::size_t count(const IndexServer& server, const std::string& request) {
  return static_cast<std::size_t>(std::ranges::count(server.requests(), request));
}

bool has_reconciled(const IndexServer& server) {
  return count(server, "GET /v1/requests") > 0;
}

/// An index that holds the request for the id "first".
struct StalledIndex {
  explicit StalledIndex(std::size_t max_inbox = IndexSenderConfig().max_inbox)
      : sender(with_inbox(max_inbox)) {
    sender.start().value();
    sender.add_ended(kAnn, {"first"});
    REQUIRE(server.wait([](const auto& s) { return s.held() == 1; }));
  }
  void answer_and_stop() {
    server.behave(IndexMode::Answer);
    sender.stop(kStopTimeout);
  }

  IndexServer server;
  IndexSender sender;

 private:
  IndexSenderConfig with_inbox(std::size_t max_inbox) {
    server.behave(IndexMode::Hold);
    IndexSenderConfig config = config_of(server);
    config.max_inbox = max_inbox;
    return config;
  }
};

}  // namespace

TEST_CASE("index sender: ended ids arrive once each, and the index's answer is counted") {
  IndexServer server;
  server.add({"req-1", "req-2", "req-9"});
  IndexSender sender(config_of(server));
  for (const char* id : {"req-1", "req-2", "req-3", "req-1"}) sender.add_ended(kAnn, {id});
  sender.start().value();  // otherwise the first id could have left before it ends again
  sender.stop(kStopTimeout);
  CHECK(server.evicted() == Evicted{{"req-1", 1}, {"req-2", 1}, {"req-3", 1}});
  CHECK(server.ids() == std::set<std::string>{"req-9"});
  CHECK(sender.counters() == IndexCounters{.incoming = 4, .removed = 2, .not_found = 1});
}

TEST_CASE("index sender: ids that end while the index is busy leave in one batch") {
  StalledIndex index;
  for (int i = 0; i < 256; ++i) index.sender.add_ended(kAnn, {"r" + std::to_string(i)});
  index.answer_and_stop();
  CHECK(index.server.evicted().size() == 257);
  CHECK(count(index.server, "POST /v1/evict") == 3);  // the held one is counted twice
}

TEST_CASE("index sender: an index that fails is asked again until it answers, then reconciled") {
  const IndexMode mode = GENERATE(IndexMode::Drop, IndexMode::Unavailable, IndexMode::Garbage,
                                  IndexMode::Huge, IndexMode::Truncated, IndexMode::NotHttp);
  IndexServer server;
  server.add({"req-1", "other"});
  server.behave(mode);
  IndexSender sender(config_of(server));
  sender.start().value();
  sender.add_ended(kAnn, {"req-1"});
  REQUIRE(server.wait([](const auto& s) { return s.requests().size() >= 3; }));
  CHECK(server.evicted().empty());
  server.behave(IndexMode::Answer);
  REQUIRE(server.wait(has_reconciled));
  sender.stop(kStopTimeout);
  CHECK(server.evicted() == Evicted{{"req-1", 1}});
  CHECK(server.ids() == std::set<std::string>{"other"});
  CHECK(sender.counters().removed == 1);
  CHECK(sender.counters().failures >= 2);
  CHECK(sender.counters().dropped == 0);
}

TEST_CASE("index sender: an index that does not answer in time is asked again") {
  IndexServer server;
  server.behave(IndexMode::Hold);
  IndexSenderConfig config = config_of(server);
  config.exchange.timeout = milliseconds(20);
  IndexSender sender(config);
  sender.start().value();
  sender.add_ended(kAnn, {"req-1"});
  CHECK(server.wait([](const auto& s) { return s.requests().size() >= 3; }));
  CHECK(eventually([&] { return sender.counters().failures >= 2; }));
}

TEST_CASE("index sender: an index that restarts with an old state is brought up to date") {
  IndexServer server;
  server.add({"req-1", "req-2"});
  IndexSender sender(config_of(server));
  sender.start().value();
  sender.add_ended(kAnn, {"req-1"});
  REQUIRE(eventually([&] { return sender.counters().removed == 1; }));
  server.stop();
  sender.add_ended(kAnn, {"req-2"});
  REQUIRE(eventually([&] { return sender.counters().failures >= 1; }));
  server.add({"req-1", "unknown"});
  server.start();
  REQUIRE(server.wait([](const auto& s) { return s.ids() == std::set<std::string>{"unknown"}; }));
  sender.stop(kStopTimeout);
  CHECK(server.evicted() == Evicted{{"req-1", 2}, {"req-2", 1}});
}

TEST_CASE("index sender: an index that restarts and forgets answers not_found, which is final") {
  IndexServer server;
  server.stop();
  IndexSender sender(config_of(server));
  sender.start().value();
  sender.add_ended(kAnn, {"req-1"});
  REQUIRE(eventually([&] { return sender.counters().failures >= 1; }));
  server.start();
  REQUIRE(server.wait(has_reconciled));
  sender.stop(kStopTimeout);
  CHECK(server.evicted() == Evicted{{"req-1", 1}});
  CHECK(sender.counters().not_found == 1);
}

TEST_CASE("index sender: ids that a worker left are removed by the next, unless they live again") {
  const TemporaryDirectory directory = TemporaryDirectory::create("spool").value();
  const std::string path = directory.file("ids");
  IndexServer server;
  server.add({"gone", "confirmed", "pending", "other"});
  {
    IndexSender killed(config_of(server), IdSpool::open(path).value());
    killed.start().value();
    for (const char* id : {"gone", "confirmed", "pending", "again"}) killed.add_live(kAnn, {id});
    killed.add_ended(kAnn, {"confirmed"});
    REQUIRE(eventually([&] { return killed.counters().removed == 1; }));
    server.behave(IndexMode::Hold);  // an index that stalls does not delay the file
    killed.add_ended(kAnn, {"pending"});
    REQUIRE(server.wait([](const auto& s) { return s.held() == 1; }));
    killed.add_live(kAnn, {"late"});
    REQUIRE(eventually([&] { return file_bytes(path).find("ann/late") != std::string::npos; }));
    killed.stop({});
  }
  server.behave(IndexMode::Unavailable);
  IndexSender next(config_of(server), IdSpool::open(path).value());
  next.start().value();
  next.add_live(kAnn, {"again"});
  REQUIRE(eventually([&] { return next.counters().failures >= 1; }));
  server.behave(IndexMode::Answer);
  REQUIRE(server.wait(has_reconciled));
  next.stop(kStopTimeout);
  CHECK(server.ids() == std::set<std::string>{"other"});
  CHECK(server.evicted() == Evicted{{"confirmed", 1}, {"gone", 1}, {"late", 1}, {"pending", 1}});
  CHECK(next.counters().incoming == 4);
  CHECK(next.counters().removed == 2);
  CHECK(next.counters().not_found == 1);
}

TEST_CASE("index sender: an id that lives again stays when the index lists it") {
  IndexServer server;
  IndexSender sender(config_of(server));
  sender.start().value();
  sender.add_ended(kAnn, {"req-1"});
  sender.add_ended(kAnn, {"req-2"});
  REQUIRE(server.wait([](const auto& s) { return s.evicted().size() == 2; }));
  server.stop();
  sender.add_live(kAnn, {"req-1"});
  sender.add_ended(kAnn, {"req-3"});
  REQUIRE(eventually([&] { return sender.counters().failures >= 1; }));
  server.add({"req-1", "req-2"});
  server.start();
  REQUIRE(server.wait([](const auto& s) { return !s.ids().contains("req-2"); }));
  sender.stop(kStopTimeout);
  CHECK(server.ids() == std::set<std::string>{"req-1"});
}

TEST_CASE("index sender: a stalled index costs bounded memory; what is beyond it is counted") {
  StalledIndex index(8);
  for (int i = 0; i < 100; ++i) index.sender.add_ended(kAnn, {"r" + std::to_string(i)});
  CHECK(index.sender.counters().dropped == 92);
  index.answer_and_stop();
  CHECK(index.server.evicted().size() == 9);
}

TEST_CASE("index sender: a tenant that fills the inbox loses its own ids") {
  StalledIndex index(8);
  index.sender.add_ended(kAnn, {"second"});
  for (int i = 0; i < 100; ++i) index.sender.add_ended({"greedy"}, {"r" + std::to_string(i)});
  index.answer_and_stop();
  CHECK(index.server.evicted().contains("second"));
  CHECK(index.server.evicted().contains("r99"));
  CHECK(index.sender.counters().dropped == 93);
}

TEST_CASE("index sender: a name that is not resolved is a failure, and does not hold a stop") {
  IndexServer server;
  IndexSenderConfig config = config_of(server);
  config.url.host = "index.local";
  config.exchange.timeout = milliseconds(1);
  const auto may_answer = std::make_shared<std::latch>(1);
  config.resolve = [may_answer](const std::string&, const std::string&) -> Result<http::Endpoints> {
    may_answer->wait();
    return fail(Errc::ConnectionRefused, "late");
  };
  {
    IndexSender sender(config);
    sender.start().value();
    sender.add_ended(kAnn, {"req-1"});
    REQUIRE(eventually([&] { return sender.counters().failures >= 2; }));
    sender.stop(kStopTimeout);
    CHECK(sender.counters().dropped == 1);
  }
  may_answer->count_down();
}

TEST_CASE("index sender: running requests alone do not fill the inbox for good") {
  IndexServer server;
  auto config = config_of(server);
  config.max_inbox = 8;
  IndexSender sender(std::move(config));
  sender.start().value();
  for (int i = 0; i < 8; ++i) sender.add_live(kAnn, {"long"});  // the thread takes them
  const auto has_room = [&] { return sender.counters().incoming > sender.counters().dropped; };
  for (int attempt = 0; attempt < 1'000'000 && !has_room(); ++attempt) {
    sender.add_ended(kAnn, {"req-1"});
    std::this_thread::yield();
  }
  sender.stop(kStopTimeout);
  CHECK(server.evicted().contains("req-1"));
}

TEST_CASE("index sender: a stalled index does not hold a stop; what is not sent is counted") {
  StalledIndex index;
  index.sender.add_ended(kAnn, {"second"});
  index.sender.stop(milliseconds(0));
  CHECK(index.sender.counters().dropped == 2);
}

TEST_CASE("index sender: a thread that the system refuses is an error") {
  IndexServer server;
  IndexSender sender(config_of(server));
  const NoMoreThreads none;
  const Result<void> started = sender.start();
  REQUIRE_FALSE(started);
  CHECK(started.error().code == Errc::SystemError);
  CHECK(started.error().detail.contains("the thread index"));
}

TEST_CASE("kv index sync: an id leaves when its request has ended and its last block is gone") {
  const TemporaryDirectory directory = TemporaryDirectory::create("spool").value();
  IndexServer server;
  const auto started = KvIndexSync::start(config_of(server), directory.file("ids")).value();
  KvIndexSync& sync = *started;
  for (const char* id : {"ann/req-1", "ann/req-2", "bob/req-3"}) sync.admitted({id});
  sync.kv_held({"ann/req-1"});
  for (const char* id : {"ann/req-1", "ann/req-2"}) sync.ended({id});
  REQUIRE(server.wait([](const auto& s) { return s.evicted() == Evicted{{"req-2", 1}}; }));
  sync.kv_gone({"ann/req-1"});
  REQUIRE(server.wait(
      [](const auto& s) { return s.evicted() == Evicted{{"req-1", 1}, {"req-2", 1}}; }));
  sync.stop(kStopTimeout);
  CHECK(server.evicted() == Evicted{{"req-1", 1}, {"req-2", 1}, {"req-3", 1}});
}

}  // namespace leasehold
