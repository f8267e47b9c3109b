// leasehold-cell and the client of etcd against a real etcd.
#include <signal.h>

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <stdexcept>

#include "ipc/etcd/client.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tests/support/test_paths.hpp"

using namespace leasehold;
using namespace leasehold::etcd;
using Catch::Contains;

namespace leasehold::testing {
namespace {

constexpr const char* kEtcd = "/usr/bin/etcd";
constexpr std::chrono::milliseconds kLong{30'000};

/// One member of etcd on a Unix socket. Its gateway makes the name of the socket from host and
/// port.
class EtcdProcess {
 public:
  EtcdProcess() {
    const bool is_up = eventually([&] {
      return child_.status() || (std::filesystem::exists(path()) && wait(client_.status(0)));
    });
    if (!is_up || child_.status())
      throw std::runtime_error("etcd does not start: " + file_bytes(directory_.file("log")));
  }

  std::string address() const { return "unix:" + path(); }
  Child& child() { return child_; }
  Client& client() { return client_; }
  template <class T>
  Result<T> wait(boost::asio::awaitable<Result<T>> call) {
    std::optional<Result<T>> result;
    boost::asio::co_spawn(io_, std::move(call), [&](std::exception_ptr error, Result<T> done) {
      if (error) std::rethrow_exception(error);
      result = std::move(done);
    });
    io_.restart();
    io_.run();
    return *std::move(result);
  }
  void put(const std::string& key, const std::string& value) { execute(Put{key, value}); }
  /// Executes an operation with a client of its own, while `client` waits.
  void change_beside(const Operation& operation) {
    boost::asio::io_context io;
    Client other(io, options());
    Transaction write{.conditions = {}, .success = {operation}, .failure = {}};
    bool has_succeeded = false;
    boost::asio::co_spawn(io, other.commit(std::move(write)),
                          [&](const std::exception_ptr&, const Result<TransactionReply>& reply) {
                            has_succeeded = reply.has_value();
                          });
    io.run();
    REQUIRE(has_succeeded);
  }
  void erase(const std::string& key) { execute(Delete{KeyRange::one(key)}); }
  void execute(const Operation& operation) {
    const auto done =
        wait(client_.commit({.conditions = {}, .success = {operation}, .failure = {}}));
    REQUIRE(done);
  }
  std::optional<KeyValue> get(const std::string& key) {
    const auto found = wait(client_.range(KeyRange::one(key)));
    REQUIRE(found);
    return found->entries.empty() ? std::nullopt : std::optional(found->entries.front());
  }

 private:
  std::string path() const { return (directory_.path() / "e:1").string(); }
  Child start() {
    const std::string command = std::string("cd '") + directory_.path().string() + "' && exec " +
                                kEtcd +
                                " --data-dir data --unsafe-no-fsync --listen-client-urls unix://e:1"
                                " --advertise-client-urls unix://e:1 --listen-peer-urls unix://p:1"
                                " --initial-advertise-peer-urls http://127.0.0.1:1"
                                " --initial-cluster default=http://127.0.0.1:1";
    return Child::start({.argv = {"/bin/sh", "-c", command}, .log_path = directory_.file("log")})
        .value();
  }
  ClientOptions options() const {
    return {.members = {MemberAddress::parse(address(), Reach::ThisMachine).value()},
            .login = {},
            .call_timeout = kLong,
            .watch_pause = std::chrono::milliseconds(1)};
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create("etcd").value();
  Child child_ = start();
  boost::asio::io_context io_;
  Client client_{io_, options()};
};

/// leasehold-cell as h1 with a state directory of its own.
class AgentProcess {
 public:
  AgentProcess(const EtcdProcess& etcd, const std::string& state) : log_path_(state + ".log") {
    std::filesystem::remove(log_path_);
    child_.emplace(Child::start({.argv = {program_path("leasehold-cell"), "--etcd", etcd.address(),
                                          "--cell", "c", "--host", "h1", "--state-dir", state},
                                 .log_path = log_path_})
                       .value());
  }
  void kill() {
    child_->signal(SIGKILL).value();
    exit_status_of(*child_);
  }
  int stop() {
    child_->signal(SIGTERM).value();
    return exit_status_of(*child_);
  }
  std::string log() const { return file_bytes(log_path_); }
  bool logs(const std::string& text) const {
    return eventually([&] { return log().contains(text); });
  }

 private:
  std::string log_path_;
  std::optional<Child> child_;
};

bool has_etcd() {
  if (std::filesystem::exists(kEtcd)) return true;
  std::puts("skipped: etcd is not installed; run apt-get install etcd-server");
  return false;
}

/// Puts and deletes a key after the listing, and closes the client when it sees both.
struct FirstChange : WatchReceiver {
  explicit FirstChange(EtcdProcess& of) : etcd(of) {}
  void on_listing(std::vector<KeyValue> entries, Revision) override {
    for (const KeyValue& entry : entries) seen += "=" + entry.key + " ";
    etcd.change_beside(Put{"w/b", "1"});
    etcd.change_beside(Delete{KeyRange::one("w/b")});
  }
  void on_events(std::vector<WatchEvent> events) override {
    for (const WatchEvent& event : events)
      seen += (event.is_deleted ? "-" : "+") + event.entry.key + " ";
    if (seen.contains("-w/b")) etcd.client().close();
  }
  void on_interrupted(const Error& error) override { seen += error.detail + " "; }

  EtcdProcess& etcd;
  std::string seen;
};

}  // namespace

TEST_CASE("cell: an agent joins, is restarted, loses its state, its key and its etcd") {
  if (!has_etcd()) return;
  EtcdProcess etcd;
  const auto directory = TemporaryDirectory::create("cell").value();
  const std::string state = directory.file("h1");
  etcd.put("/leasehold/c/config", R"({"version":1,"ttl_ms":1000,"slack_ms":100})");
  const auto incarnation = [&] { return etcd.get("/leasehold/c/hosts/h1")->created; };

  AgentProcess first(etcd, state);
  REQUIRE(first.logs("host joined"));
  const Revision joined = incarnation();
  {
    AgentProcess other(etcd, directory.file("other"));
    CHECK(other.logs("name in use"));
  }
  AgentProcess same(etcd, state + "/");
  CHECK(same.logs("another agent uses the state directory"));

  first.kill();
  AgentProcess second(etcd, state);
  CHECK(second.logs("membership resumed"));
  etcd.put("/leasehold/c/wanted/h1", R"({"drain":true})");
  CHECK(second.logs("host drains"));
  CHECK(incarnation() == joined);

  second.kill();
  std::filesystem::remove_all(state);
  AgentProcess third(etcd, state);
  CHECK(third.logs("silent host expired"));
  CHECK(third.logs("host joined"));
  CHECK(incarnation() > joined);
  etcd.erase("/leasehold/c/hosts/h1");
  CHECK(third.logs("host fenced"));
  REQUIRE(eventually([&] { return etcd.get("/leasehold/c/hosts/h1").has_value(); }));
  // The agent is a member when it has read the reply, which follows the key.
  REQUIRE(
      third.logs(fmt::format("host joined cell=c host=h1 incarnation={} ", incarnation().value)));

  etcd.child().signal(SIGSTOP).value();
  CHECK(third.logs("no beat arrives code=TimedOut"));
  CHECK(third.logs("ceiling has passed"));
  etcd.child().signal(SIGCONT).value();
  CHECK(third.logs("ceiling renewed"));
  CHECK(third.stop() == 0);
}

TEST_CASE("cell: the client of etcd reads, writes, compares and watches a real etcd") {
  if (!has_etcd()) return;
  EtcdProcess etcd;
  etcd.put("w/a", std::string("\0\xFF", 2));
  const KeyValue written = *etcd.get("w/a");
  CHECK(written.value == std::string("\0\xFF", 2));
  Transaction refused{.conditions = {Compare::absent("w/a")},
                      .success = {},
                      .failure = {Get{KeyRange::prefix("w/")}}};
  const auto reply = etcd.wait(etcd.client().commit(std::move(refused)));
  REQUIRE(reply);
  CHECK(!reply->succeeded);
  CHECK(reply->found == std::vector<std::vector<KeyValue>>{{written}});
  CHECK(etcd.wait(etcd.client().status(0))->has_leader);
  Transaction twice{.conditions = {}, .success = {Put{"k", "1"}, Put{"k", "2"}}, .failure = {}};
  const auto wrong = etcd.wait(etcd.client().commit(std::move(twice)));
  REQUIRE(!wrong);
  CHECK(wrong.error().code == Errc::BadRequest);
  CHECK_THAT(wrong.error().detail, Contains("duplicate key"));

  FirstChange changes(etcd);
  CHECK(!etcd.wait(etcd.client().watch(KeyRange::prefix("w/"), changes)));
  CHECK(changes.seen == "=w/a +w/b -w/b ");
}

}  // namespace leasehold::testing
