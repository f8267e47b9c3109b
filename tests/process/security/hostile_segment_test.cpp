// Worker segments with false announcements. The broker may kill the lying worker; other workers are
// not affected.
#include <signal.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <random>
#include <thread>

#include "ipc/segment/launch_gate.hpp"
#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

LeaseId acquire_on(control::Client& client, const std::string& worker) {
  const wire::LeaseAcquire ask{.tenant = {"a"}, .worker = worker, .request_id = next_request_id()};
  const auto reply = client.call("lease.acquire", {ask.to_json(), {}}).value();
  return wire::LeaseAcquired::from_json(reply.body).value().lease;
}

/// All bytes are accounted for.
void check_conserved(const wire::StatusView& status) {
  CHECK(status.capacity_bytes == status.free_bytes + status.owned_bytes + status.draining_bytes +
                                     status.scrubbing_bytes + status.retained_bytes +
                                     status.quarantined_bytes);
}

/// A broker with two workers, and an operator who has admitted the tenant `a`.
struct BrokerWithLiar {
  BrokerWithLiar() { broker.admit(client, "a"); }

  BrokerProcess broker;
  FakeWorker liar{broker.socket(), "liar"};
  FakeWorker honest{broker.socket(), "honest"};
  control::Client client = broker.connect();
};

}  // namespace

TEST_CASE("security: a worker whose unit never ends is killed and other leases stay live") {
  BrokerProcess broker({"--fence-timeout-ms", "300"});
  ForkedProcess liar = start_stuck_worker(broker.socket(), "liar");
  FakeWorker honest(broker.socket(), "honest");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const LeaseId lost = acquire_on(client, "liar");
  const LeaseId kept = acquire_on(client, "honest");

  broker.revoke(client, lost).value();

  CHECK(liar.wait() == SIGKILL);
  REQUIRE(eventually([&] { return broker.view(client, lost).state == LeaseState::Fenced; }));
  CHECK(broker.view(client, lost).proof == "ProcessExit");
  CHECK(honest.word_of(kept).state() == LeaseState::Live);
  check_conserved(broker.status(client));
}

TEST_CASE_METHOD(BrokerWithLiar, "security: an announcement of all ones counts as a running unit") {
  const LeaseId lease = acquire_on(client, "liar");
  const LeaseId kept = acquire_on(client, "honest");
  for (std::uint32_t thread = 0; thread < 64; ++thread) liar.announce(thread, ~0ull);

  broker.revoke(client, lease).value();

  for (int asked = 0; asked < 20; ++asked) {
    REQUIRE(broker.view(client, lease).state == LeaseState::Revoked);
  }
  for (std::uint32_t thread = 0; thread < 64; ++thread) liar.announce(thread, 0);
  liar.signal_wakeup_fd();
  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(honest.word_of(kept).state() == LeaseState::Live);
}

TEST_CASE_METHOD(BrokerWithLiar,
                 "security: random announcements do not crash the broker or prevent a fence") {
  const LeaseId kept = acquire_on(client, "honest");
  std::atomic<bool> stop = false;
  std::jthread noise([&] {
    std::mt19937_64 random(7);
    while (!stop) {
      for (std::uint32_t thread = 0; thread < 64; ++thread) liar.announce(thread, random());
      liar.signal_wakeup_fd();
      std::this_thread::yield();
    }
  });

  for (int i = 0; i < 10; ++i) {
    const LeaseId lease = acquire_on(client, "liar");
    broker.revoke(client, lease).value();
    REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  }

  stop = true;
  CHECK(honest.word_of(kept).state() == LeaseState::Live);
  check_conserved(broker.status(client));
}
