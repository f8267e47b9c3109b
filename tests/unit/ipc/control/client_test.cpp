#include "ipc/control/transport/client.hpp"

#include <catch2/catch.hpp>
#include <optional>
#include <thread>
#include <vector>

#include "peer_fixture.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using control::Client;
using control::Payload;
using control::Responder;
using leasehold::testing::RecordedCalls;
using nlohmann::json;

namespace {

/// A server for one connection, on its own thread. Whatever its handlers use must outlive it.
class Server {
 public:
  explicit Server(RecordedCalls& seen) {
    auto acceptor = control::listen_on(io_, path(), 0600);
    if (!acceptor) FAIL(acceptor.error().detail);
    acceptor->async_accept([this, &seen](boost::system::error_code, control::Socket socket) {
      auto handlers = seen.handlers();
      handlers.on_closed = [this](const Error&) { peer_.reset(); };
      peer_ = control::Peer::create(std::move(socket), std::move(handlers));
      peer_->start();
    });
    thread_ = std::jthread([this, a = *std::move(acceptor)] { io_.run(); });
  }
  ~Server() { io_.stop(); }
  std::string path() const { return directory_.file("socket"); }
  /// Call it only from a handler.
  control::Peer& peer() { return *peer_; }
  /// Stores the responder of a call that is never answered. Call it only from a handler.
  void keep(Responder respond) { kept_.push_back(std::move(respond)); }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("test").value();
  boost::asio::io_context io_;
  std::shared_ptr<control::Peer> peer_;
  std::vector<Responder> kept_;
  std::jthread thread_;
};

}  // namespace

TEST_CASE("client: calls get replies, and notifications are ignored") {
  RecordedCalls seen;
  Server server(seen);
  seen.on_call = [&](const std::string& method, Payload params, Responder respond) {
    if (method == "fail") return respond(fail(Errc::UnknownLease, "no lease 1.1"));
    server.peer().notify("ignored", {});
    respond(std::move(params));
  };
  auto client = Client::connect(server.path());
  REQUIRE(client);
  CHECK(client->call("echo", {json{{"a", 1}}, {}})->body == json{{"a", 1}});
  CHECK(client->call("fail", {}).error() == Error{Errc::UnknownLease, "no lease 1.1"});
}

TEST_CASE("client: calls at the same time get their replies in order, whichever comes first") {
  RecordedCalls seen;
  Server server(seen);
  std::optional<Responder> first;
  seen.on_call = [&](const std::string&, Payload params, Responder respond) {
    if (!first) {
      first = std::move(respond);
      return;
    }
    respond(std::move(params));
    (*first)(fail(Errc::UnknownWorker, "no worker"));
  };
  auto client = Client::connect(server.path());
  REQUIRE(client);
  std::vector<Payload> params;
  for (const int i : {1, 2}) params.push_back({json{{"a", i}}, {}});
  const auto replies = client->call_all("list", std::move(params));
  REQUIRE(replies.size() == 2);
  CHECK(replies[0].error().code == Errc::UnknownWorker);
  CHECK(replies[1]->body == json{{"a", 2}});
}

TEST_CASE("client: a missing reply is TimedOut, a lost connection is ConnectionLost") {
  RecordedCalls seen;
  Server server(seen);
  seen.on_call = [&](const std::string& method, Payload, Responder respond) {
    if (method == "hang up") server.peer().close();
    server.keep(std::move(respond));
  };
  auto client = Client::connect(server.path());
  REQUIRE(client);
  CHECK(client->call("wait", {}, std::chrono::milliseconds(1)).error().code == Errc::TimedOut);
  CHECK(client->call("hang up", {}).error().code == Errc::ConnectionLost);
  CHECK(client->call("again", {}).error().code == Errc::ConnectionLost);
}
