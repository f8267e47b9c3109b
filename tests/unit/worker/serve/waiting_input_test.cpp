// The input of tenants that a worker has to keep: unfinished lines, and lines that are paced.
#include <sys/socket.h>

#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <deque>
#include <nlohmann/json.hpp>

#include "tests/support/temporary_directory.hpp"
#include "worker/serve/connections.hpp"

using namespace leasehold;

namespace {

/// A client that sends bytes as the test says.
struct RawClient {
  RawClient(boost::asio::io_context& io, const std::string& path)
      : socket(control::connect_to(io, path).value()) {}
  /// Returns the number of bytes that were sent before the worker closed the connection.
  std::size_t send(const std::string& text, boost::asio::io_context& io) {
    std::size_t sent = 0;
    while (sent < text.size()) {
      const ssize_t n = ::send(socket.native_handle(), text.data() + sent, text.size() - sent,
                               MSG_DONTWAIT | MSG_NOSIGNAL);
      if (n < 0 && errno != EAGAIN) return sent;
      if (n > 0) sent += static_cast<std::size_t>(n);
      do io.restart();
      while (io.poll() > 0);
    }
    return sent;
  }
  std::string received() {
    std::string text(4096, ' ');
    const ssize_t n = ::recv(socket.native_handle(), text.data(), text.size(), MSG_DONTWAIT);
    text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
    return text;
  }
  control::Socket socket;
};

struct InputFixture {
  InputFixture() { connections.serve(TenantConnections::listen(io, path).value()); }
  RawClient& tenant(const std::string& name) {
    RawClient& client = clients.emplace_back(io, path);
    client.send(R"({"jsonrpc":"2.0","id":1,"method":")" + name + "\"}\n", io);
    CHECK_THAT(client.received(), Catch::Contains("result"));
    return client;
  }

  const TemporaryDirectory directory = TemporaryDirectory::create("input").value();
  const std::string path = directory.file("socket");
  boost::asio::io_context io;
  ManualClock clock;
  TenantConnections connections{
      io,
      clock,
      {.on_call =
           [this](const TenantConnection& from, const std::string& name, control::Payload,
                  control::Responder respond) {
             CHECK(connections.authenticate(from, {.lease = {1, 1}, .tenant = {name}}));
             respond(control::Payload{});
           },
       .on_closed = [](const TenantConnection&) {},
       .use_of = [](std::uint64_t,
                    LeaseId) { return ConnectionLimiter::Use{.has_requests = true}; }}};
  std::deque<RawClient> clients;
};

}  // namespace

TEST_CASE("waiting input: a tenant's unfinished lines hold its share, those of others go on") {
  InputFixture fixture;
  const std::string unfinished(1'000'000, ' ');
  const std::size_t all = TenantConnections::kMaxWaitingInputBytes / unfinished.size();
  std::size_t accepted = 0;
  std::string answer;
  while (accepted < all && answer.empty()) {
    RawClient& greedy = fixture.tenant("greedy");
    greedy.send(unfinished, fixture.io);
    answer = greedy.received();
    if (answer.empty()) ++accepted;
  }
  CHECK(accepted >= all / 4);
  CHECK(accepted <= all / 2);
  CHECK_THAT(answer, Catch::Contains("QueueFull") && Catch::Contains("tenant greedy"));

  RawClient& ann = fixture.tenant("ann");
  CHECK(ann.send(unfinished, fixture.io) == unfinished.size());
  CHECK(ann.received().empty());
  ann.send(R"({"jsonrpc":"2.0","id":2,"method":"ann"})"
           "\n",
           fixture.io);
  CHECK_THAT(ann.received(), Catch::Contains("\"id\":2"));
}
