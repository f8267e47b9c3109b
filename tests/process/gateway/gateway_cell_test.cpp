// A gateway that takes its hosts from a cell, with a real etcd and hosts of the test.
#include <signal.h>

#include <fmt/format.h>

#include <array>
#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <catch2/catch.hpp>
#include <fstream>
#include <memory>
#include <thread>

#include "ipc/http/http_await.hpp"
#include "tests/process/cell/etcd_process.hpp"
#include "tests/process/gateway/fake_host.hpp"
#include "tests/process/gateway/gateway_process.hpp"

namespace leasehold::testing {
namespace {

const std::string kCellKey = "lh-1";

std::string host_key_of(const std::string& host) {
  return "/leasehold/c/hosts/" + host;
}

/// An etcd with the cell c.
struct CellOfTest {
  EtcdProcess etcd;
  std::string file = etcd.file("cell.toml");
  int beats = 0;

  CellOfTest() {
    etcd.put("/leasehold/c/config", R"({"version":1,"ttl_ms":30000,"slack_ms":100})");
    std::ofstream(file) << fmt::format("etcd = [\"{}\"]\ncell = \"c\"\n", etcd.address());
  }

  struct Beat {
    std::int64_t ttl_ms = 30'000;
    bool is_draining = false;
  };
  /// The agent of a host beats.
  void beat(const std::string& host, const std::string& door, const Beat& beat) {
    etcd.put(host_key_of(host),
             fmt::format(R"({{"beat":"{}","ttl_ms":{},"doors":["{}"],"draining":{}}})", ++beats,
                         beat.ttl_ms, door, beat.is_draining));
  }
  std::uint64_t incarnation(const std::string& host) {
    return static_cast<std::uint64_t>(etcd.get(host_key_of(host))->created.value);
  }
  /// A host joins, or joins again.
  void join(const std::string& name, FakeHost& host) {
    etcd.erase(host_key_of(name));
    beat(name, host.address(), {});
    host.set_incarnation(incarnation(name));
  }
};

/// A second address of an etcd, which can hang: connections stay open, and nothing passes.
class HangingMember {
 public:
  HangingMember(std::string path, std::string etcd)
      : path_(std::move(path)), etcd_(std::move(etcd)) {
    boost::asio::co_spawn(io_, accept(), boost::asio::detached);
    thread_ = std::thread([this] { io_.run(); });
  }
  ~HangingMember() {
    io_.stop();
    thread_.join();
  }
  void hang() { hangs_ = true; }

 private:
  using Local = boost::asio::local::stream_protocol;
  using Socket = std::shared_ptr<Local::socket>;

  boost::asio::awaitable<void> accept() {
    Local::acceptor acceptor(io_, Local::endpoint(path_));
    while (true) {
      auto client = std::make_shared<Local::socket>(io_);
      const auto [accepted] = co_await acceptor.async_accept(*client, http::kAwait);
      auto server = std::make_shared<Local::socket>(io_);
      const auto [connected] = co_await server->async_connect(Local::endpoint(etcd_), http::kAwait);
      if (accepted || connected) continue;
      boost::asio::co_spawn(io_, pass(client, server), boost::asio::detached);
      boost::asio::co_spawn(io_, pass(server, client), boost::asio::detached);
    }
  }

  boost::asio::awaitable<void> pass(Socket from, Socket to) {
    std::array<char, 4096> bytes{};
    boost::asio::steady_timer tick(io_);
    while (true) {
      const auto [error, size] =
          co_await from->async_read_some(boost::asio::buffer(bytes), http::kAwait);
      while (hangs_) {
        tick.expires_after(std::chrono::milliseconds(20));
        co_await tick.async_wait(http::kAwait);
      }
      if (error) break;
      co_await boost::asio::async_write(*to, boost::asio::buffer(bytes.data(), size), http::kAwait);
    }
    to->close();
  }

  std::string path_;
  std::string etcd_;
  std::atomic<bool> hangs_ = false;
  boost::asio::io_context io_;
  std::thread thread_;
};

std::string ask_cell() {
  return post("/v1/chat/completions", kCellKey, chat(true));
}

/// A host that has begun the text of a client, and waits before its fourth token.
FakeHost& cell_runner(FakeHost& a, FakeHost& b) {
  REQUIRE(eventually([&] { return a.running() + b.running() == 1; }));
  return a.running() == 1 ? a : b;
}

/// A host that joins after the listing is reported by the watch, which has begun then. Before, the
/// gateway leaves a member that hangs because its call times out.
void wait_for_watch(GatewayProcess& gateway, CellOfTest& cell, FakeHost& later) {
  cell.join("later", later);
  REQUIRE(eventually([&] { return gateway.logs("name=later"); }));
}

}  // namespace

TEST_CASE("gateway: it serves with the hosts of a cell as they join, drain and leave") {
  if (!has_etcd()) return;
  CellOfTest cell;
  FakeHost a("a"), b("b");
  GatewayProcess gateway({}, {"--cell", cell.file});
  CHECK(gateway.send(get("/health", "")).status == 503);
  cell.join("a", a);
  REQUIRE(gateway.has_health(200));
  CHECK(gateway.send(ask_cell()).events().size() == FakeHost::kTokens + 1);

  a.allow(3);
  HttpClient client(gateway.address());
  client.write(ask_cell());
  REQUIRE(client.read_until(has_events(3)));
  cell.join("b", b);
  cell.beat("a", a.address(), {.is_draining = true});
  CHECK(client.reply().events().size() == FakeHost::kTokens + 1);
  CHECK(eventually([&] { return gateway.logs("cause=draining"); }));

  cell.etcd.erase(host_key_of("b"));
  cell.etcd.put(host_key_of("x"), "{");
  cell.beat("y", "ftp://h", {});
  INFO(gateway.log());
  CHECK(gateway.has_health(503));
  CHECK(eventually([&] { return gateway.logs("hosts/x in etcd is wrong"); }));
  CHECK(eventually([&] { return gateway.logs("'ftp://h' is not a host"); }));
  CHECK(gateway.stop() == 0);
}

TEST_CASE("gateway: a text leaves a host that has left its cell, and no answer of it counts") {
  if (!has_etcd()) return;
  CellOfTest cell;
  FakeHost a("a"), b("b");
  cell.join("a", a);
  cell.join("b", b);
  GatewayProcess gateway({}, {"--cell", cell.file, "--beat-ms", "10000"});
  for (const char* name : {"name=a", "name=b"})
    REQUIRE(eventually([&] { return gateway.logs(name); }));
  a.allow(3);
  b.allow(3);
  HttpClient client(gateway.address());
  client.write(ask_cell());
  REQUIRE(client.read_until(has_events(3)));
  FakeHost& gone = cell_runner(a, b);
  FakeHost& other = &gone == &a ? b : a;
  const std::string name = &gone == &a ? "a" : "b";
  other.allow(FakeHost::kTokens);
  const std::uint64_t before = cell.incarnation(name);
  cell.etcd.erase(host_key_of(name));
  const HttpReply reply = client.reply();
  INFO(gateway.log());
  CHECK(reply.events().size() == FakeHost::kTokens + 1);
  CHECK(eventually([&] { return gateway.logs("cause=gone"); }));
  CHECK(eventually([&] { return gone.running() == 0; }));

  // The process at the door is the earlier one until it says otherwise.
  other.set_ready(false);
  cell.join(name, gone);
  gone.set_incarnation(before);
  gone.allow(FakeHost::kTokens);
  CHECK(eventually([&] { return gateway.logs(fmt::format("answers as incarnation {}", before)); }));
  CHECK(gateway.has_health(503));
  gone.set_incarnation(cell.incarnation(name));
  CHECK(gateway.has_health(200));
  CHECK(gateway.send(ask_cell()).events().size() == FakeHost::kTokens + 1);
}

TEST_CASE("gateway: a silent host of a cell is expired, unless it has no TTL or etcd was away") {
  if (!has_etcd()) return;
  CellOfTest cell;
  FakeHost a("a"), b("b");
  cell.join("a", a);
  cell.beat("b", b.address(), {.ttl_ms = 0});
  b.set_incarnation(cell.incarnation("b"));
  GatewayProcess gateway({}, {"--cell", cell.file, "--metrics", cell.etcd.file("metrics")});
  REQUIRE(gateway.has_health(200));
  cell.beat("a", a.address(), {.ttl_ms = 4'000});
  const auto is_away = [&] { return gateway.logs("etcd cannot be used"); };
  cell.etcd.child().signal(SIGSTOP).value();
  REQUIRE(eventually(is_away));
  const auto etcd_age_s = [&] {
    HttpClient client(cell.etcd.file("metrics"));
    client.write(get("/metrics", ""));
    const std::string page = client.reply().body;
    const std::string mark = "\nleasehold_gateway_etcd_age_seconds ";
    return std::stod(page.substr(page.find(mark) + mark.size()));
  };
  REQUIRE(eventually([&] { return etcd_age_s() > 5; }));
  CHECK(gateway.send(ask_cell()).status == 200);  // the known hosts stay
  cell.etcd.child().signal(SIGCONT).value();
  REQUIRE(eventually([&] { return gateway.logs("etcd answers again"); }));
  cell.beat("a", a.address(), {.ttl_ms = 4'000});  // its TTL had passed
  CHECK_FALSE(gateway.logs("silent host expired"));
  CHECK(eventually([&] { return gateway.logs("silent host expired host=a"); }));
  CHECK_FALSE(cell.etcd.get(host_key_of("a")));
  CHECK(cell.etcd.get(host_key_of("b")));
}

TEST_CASE("gateway: a watch whose member of etcd hangs begins again at another member") {
  if (!has_etcd()) return;
  CellOfTest cell;
  FakeHost a("a"), b("b");
  cell.join("a", a);
  const std::string path = cell.etcd.file("m");
  HangingMember member(path, cell.etcd.address().substr(std::string("unix:").size()));
  std::ofstream(cell.file) << fmt::format("etcd = [\"unix:{}\", \"{}\"]\ncell = \"c\"\n", path,
                                          cell.etcd.address());
  GatewayProcess gateway({}, {"--cell", cell.file});
  REQUIRE(gateway.has_health(200));
  FakeHost later("later");
  wait_for_watch(gateway, cell, later);
  member.hang();
  cell.beat("a", a.address(), {});  // the watch does not report it
  cell.join("b", b);
  INFO(gateway.log());
  CHECK(eventually([&] { return gateway.logs("watch of hosts is behind"); }));
  CHECK(eventually([&] { return gateway.logs("name=b"); }));
  CHECK(gateway.send(ask_cell()).status == 200);
}

TEST_CASE("gateway: a watch that misses the deletion of any host begins again") {
  if (!has_etcd()) return;
  CellOfTest cell;
  FakeHost a("a"), b("b");
  cell.join("a", a);
  cell.join("b", b);
  const std::string path = cell.etcd.file("m");
  HangingMember member(path, cell.etcd.address().substr(std::string("unix:").size()));
  std::ofstream(cell.file) << fmt::format("etcd = [\"unix:{}\", \"{}\"]\ncell = \"c\"\n", path,
                                          cell.etcd.address());
  GatewayProcess gateway({}, {"--cell", cell.file});
  for (const char* name : {"name=a", "name=b"})
    REQUIRE(eventually([&] { return gateway.logs(name); }));
  FakeHost later("later");
  wait_for_watch(gateway, cell, later);
  member.hang();
  cell.etcd.erase(host_key_of("b"));  // not the host that has been silent for longest
  INFO(gateway.log());
  CHECK(eventually([&] { return gateway.logs("host left its cell"); }));
  CHECK(gateway.logs("watch of hosts is behind"));
  CHECK(gateway.send(ask_cell()).status == 200);
}

}  // namespace leasehold::testing
