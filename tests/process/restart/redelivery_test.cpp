/// After a restart the broker checks every memory object that a worker redelivers.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "ipc/control/client.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/process/broker/fake_worker.hpp"
#include "tests/process/restart/restartable.hpp"

namespace leasehold::testing {
namespace {

/// A broker with a descriptor store, a worker without a model and one lease of two extents.
struct RedeliveryFixture {
  StateDirectory state;
  FdStore store;
  std::optional<Child> child;
  std::string socket = state.path() + "/broker.sock";
  std::optional<FakeWorker> worker;
  LeaseId lease;
  std::vector<ExtentId> extents;

  RedeliveryFixture() {
    start();
    worker.emplace(socket, "w0");
    holder.emplace(control::Client::connect(socket).value());
    ask("tenant.admit", wire::TenantAdmit{.tenant = {"a"}, .ttl_ms = 3'600'000}.to_json());
    const auto acquired =
        ask("lease.acquire", wire::LeaseAcquire{.tenant = {"a"}, .blocks = 16}.to_json());
    lease = wire::LeaseAcquired::from_json(acquired.body).value().lease;
    extents = worker->extents_of(lease);
  }

  void start() {
    child.emplace(
        store
            .start({.argv = {program_path("leasehold-broker"), "--socket", socket, "--capacity",
                             "64MiB", "--state-dir", state.path(), "--reattach-grace-ms", "600000",
                             "--log-level", "error", "--fence-timeout-ms", "3600000"},
                    .log_path = state.path() + "/broker.log"})
            .value());
    REQUIRE(eventually([this] { return control::Client::connect(socket).has_value(); }));
  }

  void restart() {
    REQUIRE(child->signal(SIGKILL));
    REQUIRE(eventually([this] { return child->status().has_value(); }));
    start();
    holder.emplace(control::Client::connect(socket).value());
  }

  control::Payload ask(const std::string& method, control::Json params) {
    if (!params.contains("request_id") || params["request_id"] == "") {
      params["request_id"] = "r-" + std::to_string(++requests);
    }
    return holder->call(method, {std::move(params), {}}).value();
  }
  wire::StatusView status() {
    return wire::StatusView::from_json(holder->call("status", {}).value().body).value();
  }
  LeaseState lease_state() {
    const auto listed = holder->call("lease.list", {control::Json{{"limit", 100}}, {}}).value();
    for (const auto& item : listed.body.at("items")) {
      const auto view = wire::LeaseView::from_json(item).value();
      if (view.lease == lease) return view.state;
    }
    throw std::runtime_error("no such lease");
  }

  std::optional<control::Client> holder;
  int requests = 0;
};

std::vector<UniqueFd> one(UniqueFd fd) {
  std::vector<UniqueFd> fds;
  fds.push_back(std::move(fd));
  return fds;
}

template <class T>
Errc code_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().code;
}

}  // namespace

TEST_CASE("redelivery: the granted memory is accepted and the lease stays live") {
  RedeliveryFixture fixture;
  fixture.restart();
  REQUIRE(fixture.worker->reconnect(fixture.socket));

  REQUIRE(fixture.worker->redeliver(fixture.lease, fixture.extents,
                                    fixture.worker->copies_of(fixture.lease)));
  REQUIRE(fixture.worker->send_ready());

  CHECK(fixture.lease_state() == LeaseState::Live);
  CHECK(fixture.status().free_bytes == 60u << 20);
  fixture.ask("lease.revoke", wire::LeaseRevoke{.lease = fixture.lease}.to_json());
  CHECK(eventually([&] { return fixture.status().free_bytes == 64u << 20; }));
  CHECK(fixture.status().quarantined_bytes == 0);
}

TEST_CASE("redelivery: other memory with the id of a granted extent is refused") {
  RedeliveryFixture fixture;
  fixture.restart();
  REQUIRE(fixture.worker->reconnect(fixture.socket));
  const auto offer = [&](UniqueFd fd) {
    return fixture.worker->redeliver(fixture.lease, {fixture.extents[0]}, one(std::move(fd)));
  };
  const MemoryObject made_up =
      MemoryObject::create({.name = "forged", .size_bytes = 2u << 20}).value();
  auto copies = fixture.worker->copies_of(fixture.lease);
  const std::string read_only_path = "/proc/self/fd/" + std::to_string(copies[0].get());

  CHECK(code_of(offer(made_up.fd().duplicate().value())) == Errc::UntrustedSegment);
  CHECK(code_of(offer(std::move(copies[1]))) == Errc::UntrustedSegment);  // another extent's
  CHECK(code_of(offer(UniqueFd(::open(read_only_path.c_str(), O_RDONLY | O_CLOEXEC)))) ==
        Errc::UntrustedSegment);
  CHECK(code_of(offer(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)))) ==
        Errc::UntrustedSegment);
  CHECK(code_of(fixture.worker->redeliver(fixture.lease, {fixture.extents[0]}, {})) ==
        Errc::BadRequest);
  CHECK(code_of(fixture.worker->redeliver(fixture.lease, {ExtentId{999}},
                                          one(made_up.fd().duplicate().value()))) ==
        Errc::UnknownLease);

  // Nothing valid was delivered, so the lease ends and all its memory is free.
  REQUIRE(fixture.worker->send_ready());
  CHECK(eventually([&] { return fixture.status().free_bytes == 64u << 20; }));
  CHECK(fixture.lease_state() == LeaseState::Fenced);
}

TEST_CASE("redelivery: only a resumed worker may send descriptors") {
  RedeliveryFixture fixture;
  fixture.restart();
  FakeWorker newcomer(fixture.socket, "w1");
  const auto refused =
      newcomer.redeliver(fixture.lease, fixture.extents, fixture.worker->copies_of(fixture.lease));
  CHECK(code_of(refused) == Errc::ConnectionLost);  // the broker closed the connection
  CHECK(fixture.lease_state() == LeaseState::Live);
}

}  // namespace leasehold::testing
