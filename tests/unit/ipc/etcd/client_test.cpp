// The client of etcd, against members that answer, fail and lie.
#include <atomic>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <catch2/catch.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "ipc/control/transport/base64.hpp"
#include "ipc/etcd/client.hpp"
#include "ipc/etcd/wait_for.hpp"
#include "tests/unit/ipc/etcd/modelled_member.hpp"

using namespace leasehold;
using namespace leasehold::etcd;
using namespace leasehold::testing;
using Catch::Contains;
namespace asio = boost::asio;

namespace {

constexpr std::chrono::milliseconds kLong{60'000};
const std::string kShortHeader = R"("header":{"revision":"7"})";
const std::string kPutReply =
    reply_200("{" + kShortHeader + R"(,"succeeded":true,"responses":[{"response_put":{}}]})");
const Transaction kPut{.conditions = {}, .success = {Put{"a", "b"}}, .failure = {}};

std::string entry_json(const std::string& key, int created, int modified) {
  return nlohmann::json{{"key", control::to_base64(key)},
                        {"value", control::to_base64("v")},
                        {"create_revision", std::to_string(created)},
                        {"mod_revision", std::to_string(modified)}}
      .dump();
}

std::string never_answer(const ModelledMember::Request&) {
  return " ";  // not HTTP, and not complete
}

/// A client of these members on an io_context that the test runs.
struct Rig {
  explicit Rig(const std::vector<const ModelledMember*>& members,
               std::chrono::milliseconds timeout = kLong, std::optional<Login> login = {}) {
    ClientOptions options{.login = std::move(login),
                          .call_timeout = timeout,
                          .watch_pause = std::chrono::milliseconds(1)};
    for (const ModelledMember* member : members)
      options.members.push_back(
          MemberAddress::parse(member->address(), Reach::ThisMachine).value());
    client = std::make_unique<Client>(io, std::move(options));
  }
  template <class T>
  Result<T> wait(asio::awaitable<Result<T>> call) {
    return wait_for(io, std::move(call));
  }

  asio::io_context io;
  std::unique_ptr<Client> client;
};

/// Records what a watch finds, and closes the client after as many calls as the test wants.
struct Recorder : WatchReceiver {
  Recorder(Client& watched, std::size_t calls) : client(watched), calls_left(calls) {}
  void on_listing(std::vector<KeyValue> entries, Revision revision) override {
    lines.push_back("list " + std::to_string(revision.value));
    for (const KeyValue& entry : entries) lines.push_back("= " + entry.key);
    count();
  }
  void on_events(std::vector<WatchEvent> events) override {
    for (const WatchEvent& event : events)
      lines.push_back((event.is_deleted ? "- " : "+ ") + event.entry.key + " " +
                      std::to_string(event.entry.modified.value));
    count();
  }
  void on_interrupted(const Error& error) override {
    errors.push_back(error.detail);
    count();
  }
  void count() {
    if (--calls_left == 0) client.close();
  }

  Client& client;
  std::size_t calls_left;
  std::vector<std::string> lines;
  std::vector<std::string> errors;
};

}  // namespace

TEST_CASE("etcd client: a read goes on at the next member, a transaction that was sent does not") {
  const ModelledMember broken([](const auto&) { return std::string(); });
  const ModelledMember good([](const ModelledMember::Request& request) {
    return request.is("/v3/kv/range")
               ? reply_200("{" + kShortHeader + R"(,"kvs":[)" + entry_json("a", 2, 3) + "]}")
               : kPutReply;
  });
  Rig reads({&broken, &good});
  const auto found = reads.wait(reads.client->range(KeyRange::one("a")));
  REQUIRE(found);
  CHECK(found->entries.at(0).modified == Revision{3});

  Rig writes({&broken, &good});
  const auto lost = writes.wait(writes.client->commit(kPut));
  REQUIRE(!lost);
  CHECK(lost.error().code == Errc::ConnectionLost);
  CHECK_THAT(lost.error().detail, Contains(broken.address()));
  CHECK(good.count("/v3/kv/txn") == 0);
  CHECK(writes.wait(writes.client->commit(kPut)));  // the next call uses the next member
  CHECK(good.count("/v3/kv/txn") == 1);
}

TEST_CASE("etcd client: a transaction that was not sent goes to the next member") {
  const ModelledMember good([](const auto&) { return kPutReply; });
  auto gone = std::make_unique<ModelledMember>(never_answer);
  Rig rig({gone.get(), &good});
  gone.reset();
  CHECK(rig.wait(rig.client->commit(kPut)));
}

TEST_CASE("etcd client: an encrypted member that hangs is left after the timeout of a call") {
  asio::io_context unused;
  const asio::ip::tcp::acceptor hung(unused, {asio::ip::make_address("127.0.0.1"), 0});
  const ModelledMember good([](const auto&) {
    return reply_200("{" + kShortHeader + R"(,"kvs":[)" + entry_json("a", 2, 3) + "]}");
  });
  Rig rig({&good});
  ClientOptions options{.tls = http::TlsClient::load({}, "--etcd-ca").value(),
                        .call_timeout = std::chrono::milliseconds(50)};
  const std::string port = std::to_string(hung.local_endpoint().port());
  for (const std::string& member : {"https://127.0.0.1:" + port, good.address()})
    options.members.push_back(MemberAddress::parse(member, Reach::ThisMachine).value());
  rig.client = std::make_unique<Client>(rig.io, std::move(options));
  asio::steady_timer too_late(rig.io, http::kHandshakeTimeout / 2);
  too_late.async_wait([&](const auto& error) {
    if (!error) rig.client->close();
  });
  const auto read = [&]() -> asio::awaitable<Result<RangeReply>> {
    KeyRange range = KeyRange::one("a");
    auto found = co_await rig.client->range(std::move(range));
    too_late.cancel();
    co_return found;
  };
  CHECK(rig.wait(read()));
}

TEST_CASE("etcd client: a member that says nothing, too much or garbage is a typed error") {
  const auto error_with = [](const ModelledMember::Answer& answer,
                             std::chrono::milliseconds timeout = kLong) {
    const ModelledMember member(answer);
    Rig rig({&member}, timeout);
    const auto reply = rig.wait(rig.client->range(KeyRange::one("a")));
    REQUIRE(!reply);
    return reply.error();
  };
  CHECK(error_with(never_answer, std::chrono::milliseconds(300)).code == Errc::TimedOut);
  CHECK(error_with([](const auto&) { return std::string("220 smtp ready\r\n\r\n"); }).code ==
        Errc::MalformedMessage);
  CHECK(error_with([](const auto&) { return reply_200("<html>"); }).code == Errc::MalformedMessage);
  CHECK(error_with([](const auto&) { return reply_of(404, "404 page not found\n"); }).code ==
        Errc::MalformedMessage);
  CHECK(error_with([](const auto&) { return reply_200(std::string(10 << 20, 'x')); }).code ==
        Errc::MessageTooLarge);
  CHECK(error_with([](const auto&) {
          return "HTTP/1.1 200 OK\r\nX: " + std::string(100'000, 'x');
        }).code == Errc::MessageTooLarge);
}

TEST_CASE("etcd client: a range is read in pages of one revision") {
  const ModelledMember member([](const ModelledMember::Request& request) {
    const bool is_first = !request.body.contains("revision");
    const std::string key = is_first ? "p/a" : "p/b";
    return reply_200("{" + kShortHeader + (is_first ? R"(,"more":true)" : "") + R"(,"kvs":[)" +
                     entry_json(key, 2, 3) + "]}");
  });
  Rig rig({&member});
  const auto found = rig.wait(rig.client->range(KeyRange::prefix("p/")));
  REQUIRE(found);
  CHECK(found->entries.size() == 2);
  const auto sent = nlohmann::json::parse(member.requests().at(1).body);
  CHECK(sent.at("revision") == "7");
  CHECK(control::from_base64(sent.at("key").get<std::string>()) == std::string("p/a") + '\0');
}

TEST_CASE("etcd client: a token is fetched once, and again when etcd refuses it") {
  int logins = 0;
  const ModelledMember member([&](const ModelledMember::Request& request) {
    if (request.is("/v3/auth/authenticate")) {
      CHECK(nlohmann::json::parse(request.body).at("password") == "secret");
      return reply_200("{" + kShortHeader + R"(,"token":"t)" + std::to_string(++logins) + "\"}");
    }
    const bool is_valid = request.head.contains("Authorization: t2\r\n");
    return logins == 1 || is_valid
               ? (is_valid
                      ? kPutReply
                      : reply_of(401, R"({"message":"etcdserver: invalid auth token","code":16})"))
               : reply_of(500, "{}");
  });
  Rig rig({&member}, kLong, Login{"host-a", "secret"});
  CHECK(rig.wait(rig.client->commit(kPut)));
  CHECK(rig.wait(rig.client->commit(kPut)));
  CHECK(logins == 2);
}

TEST_CASE("etcd client: a wrong password is an error of the user, and is not tried for ever") {
  const ModelledMember member([](const auto&) {
    return reply_of(
        400,
        R"({"message":"etcdserver: authentication failed, invalid user ID or password","code":3})");
  });
  Rig rig({&member}, kLong, Login{"host-a", "wrong"});
  const auto reply = rig.wait(rig.client->commit(kPut));
  REQUIRE(!reply);
  CHECK(reply.error().code == Errc::PermissionDenied);
  CHECK_THAT(reply.error().detail, Contains("password file"));
  CHECK(member.requests().size() == 1);
}

TEST_CASE("etcd client: a watch lists, receives changes once, and asks for a leader") {
  const std::string created = R"({"result":{"header":{"revision":"7"},"created":true}})";
  const auto event = [](int revision) {
    return R"({"result":{"header":{"revision":"9"},"events":[{"kv":)" +
           entry_json("m/a", 2, revision) + "}]}}";
  };
  std::atomic<int> watches = 0;
  const ModelledMember member([&](const ModelledMember::Request& request) {
    if (request.is("/v3/kv/range"))
      return reply_200("{" + kShortHeader + R"(,"kvs":[)" + entry_json("m/a", 2, 3) + "]}");
    CHECK(request.head.contains("Grpc-Metadata-hasleader: true\r\n"));
    // The first stream breaks after revision 8, and the second one repeats it.
    if (++watches == 1) return stream_of({created, event(8)}) + "xyz\r\n";
    CHECK(nlohmann::json::parse(request.body)["create_request"]["start_revision"] == "9");
    return stream_of({created, event(8), event(9)});
  });
  Rig rig({&member});
  Recorder recorder(*rig.client, 4);
  CHECK(!rig.wait(rig.client->watch(KeyRange::prefix("m/"), recorder)));
  CHECK(recorder.lines == std::vector<std::string>{"list 7", "= m/a", "+ m/a 8", "+ m/a 9"});
  CHECK(recorder.errors.size() == 1);
  CHECK(member.count("/v3/kv/range") == 1);
}

TEST_CASE("etcd client: after a compaction a watch lists again") {
  std::atomic<int> watches = 0;
  const ModelledMember member([&](const ModelledMember::Request& request) {
    if (request.is("/v3/kv/range")) return reply_200("{" + kShortHeader + "}");
    return ++watches == 1
               ? stream_of({R"({"result":{"header":{},"canceled":true,"compact_revision":"9"}})"})
               : std::string();
  });
  Rig rig({&member});
  Recorder recorder(*rig.client, 3);
  CHECK(!rig.wait(rig.client->watch(KeyRange::prefix("m/"), recorder)));
  CHECK(recorder.lines == std::vector<std::string>{"list 7", "list 7"});
  CHECK_THAT(recorder.errors.at(0), Contains("compacted"));
}

TEST_CASE("etcd client: a watch that the user may not have ends with the reason") {
  const ModelledMember member([&](const ModelledMember::Request& request) {
    if (request.is("/v3/kv/range")) return reply_200("{" + kShortHeader + "}");
    return stream_of(
        {R"({"result":{"header":{"revision":"7"},"canceled":true,)"
         R"("cancel_reason":"rpc error: code = PermissionDenied desc = etcdserver: permission denied"}})"});
  });
  Rig rig({&member});
  Recorder recorder(*rig.client, 99);
  const auto ended = rig.wait(rig.client->watch(KeyRange::prefix("m/"), recorder));
  REQUIRE(!ended);
  CHECK(ended.error().code == Errc::PermissionDenied);
}
