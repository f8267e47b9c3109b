/// After a restart the broker checks every memory object that a worker redelivers.
#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "ipc/region/memory_object.hpp"
#include "tests/checks/local_system/fd_store.hpp"
#include "tests/process/broker/fake_worker.hpp"

namespace leasehold::testing {
namespace {

/// A broker with a descriptor store, a worker without a model and one lease of two extents.
struct RedeliveryFixture {
  TemporaryDirectory state = TemporaryDirectory::create("state").value();
  FdStore store;
  BrokerProcess broker{{"--state-dir", state.path(), "--reattach-grace-ms", "600000",
                        "--fence-timeout-ms", "3600000"},
                       &store};
  FakeWorker worker{broker.socket(), "w0"};
  control::Client client = broker.connect();
  LeaseId lease;
  std::vector<ExtentId> extents;

  RedeliveryFixture() {
    broker.admit(client, "a");
    lease = broker.acquire(client, "a", 16).value().lease;
    extents = worker.extents_of(lease);
  }

  void restart() {
    broker.kill_and_restart();
    client = broker.connect();
  }
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

TEST_CASE_METHOD(RedeliveryFixture,
                 "redelivery: the granted memory is accepted and the lease stays live") {
  restart();
  REQUIRE(worker.reconnect(broker.socket()));

  REQUIRE(worker.redeliver(lease, extents, worker.copies_of(lease)));
  REQUIRE(worker.send_ready());

  CHECK(broker.view(client, lease).state == LeaseState::Live);
  CHECK(broker.status(client).free_bytes == 60u << 20);
  broker.revoke(client, lease).value();
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
  CHECK(broker.status(client).quarantined_bytes == 0);
}

TEST_CASE_METHOD(RedeliveryFixture,
                 "redelivery: other memory with the id of a granted extent is refused") {
  restart();
  REQUIRE(worker.reconnect(broker.socket()));
  const auto offer = [&](UniqueFd fd) {
    return worker.redeliver(lease, {extents[0]}, one(std::move(fd)));
  };
  const MemoryObject made_up =
      MemoryObject::create({.name = "forged", .size_bytes = 2u << 20}).value();
  auto copies = worker.copies_of(lease);
  const std::string read_only_path = "/proc/self/fd/" + std::to_string(copies[0].get());

  CHECK(code_of(offer(made_up.fd().duplicate().value())) == Errc::UntrustedSegment);
  CHECK(code_of(offer(std::move(copies[1]))) == Errc::UntrustedSegment);  // another extent's
  CHECK(code_of(offer(UniqueFd(::open(read_only_path.c_str(), O_RDONLY | O_CLOEXEC)))) ==
        Errc::UntrustedSegment);
  CHECK(code_of(offer(UniqueFd(::open("/dev/null", O_RDWR | O_CLOEXEC)))) ==
        Errc::UntrustedSegment);
  CHECK(code_of(worker.redeliver(lease, {extents[0]}, {})) == Errc::BadRequest);
  CHECK(code_of(worker.redeliver(lease, {ExtentId{999}}, one(made_up.fd().duplicate().value()))) ==
        Errc::UnknownLease);

  // Nothing valid was delivered, so the lease ends and all its memory is free.
  REQUIRE(worker.send_ready());
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
  CHECK(broker.view(client, lease).state == LeaseState::Fenced);
}

TEST_CASE_METHOD(RedeliveryFixture, "redelivery: only a resumed worker may send descriptors") {
  restart();
  FakeWorker newcomer(broker.socket(), "w1");
  const auto refused = newcomer.redeliver(lease, extents, worker.copies_of(lease));
  CHECK(code_of(refused) == Errc::ConnectionLost);  // the broker closed the connection
  CHECK(broker.view(client, lease).state == LeaseState::Live);
}

}  // namespace leasehold::testing
