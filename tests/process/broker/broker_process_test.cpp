#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

/// The name of the error, or "success".
std::string outcome(const Result<control::Payload>& reply) {
  return reply ? "success" : std::string(name(reply.error().code));
}

bool is_zero(const Mapping& mapping) {
  return std::all_of(mapping.data(), mapping.data() + mapping.size_bytes(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

/// A broker whose worker is stuck in a unit, and an operator who has admitted the tenant `a`.
struct BrokerWithStuckWorker {
  BrokerWithStuckWorker() { broker.admit(client, "a"); }

  BrokerProcess broker{{"--fence-timeout-ms", "300"}};
  ForkedProcess worker = start_stuck_worker(broker.socket());
  control::Client client = broker.connect();
};

}  // namespace

TEST_CASE_METHOD(
    BrokerWithWorker,
    "broker: a revoked lease is fenced when its unit ends, and its memory is then zero") {
  const auto acquired = broker.acquire(client, "a").value();
  const MemoryObject kept = MemoryObject::adopt(worker.keep_extent(acquired.lease)).value();
  {
    const auto mapping = Mapping::map(kept.fd(), kept.size_bytes(), MapAccess::ReadWrite).value();
    std::fill_n(mapping.data(), mapping.size_bytes(), std::byte{0x5a});
  }
  worker.begin_unit();

  broker.revoke(client, acquired.lease).value();

  CHECK(worker.word_of(acquired.lease).state() == LeaseState::Revoked);
  for (int asked = 0; asked < 20; ++asked) {
    REQUIRE(broker.view(client, acquired.lease).state == LeaseState::Revoked);
  }
  CHECK(kept.allocated_bytes().value() == kept.size_bytes());
  worker.end_unit();
  worker.signal_wakeup_fd();
  REQUIRE(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
  const wire::LeaseView view = broker.view(client, acquired.lease);
  CHECK(view.state == LeaseState::Fenced);
  CHECK(view.proof == "LaunchQuiet");
  CHECK(view.clocks.quiet_ns >= 0);
  CHECK(view.clocks.reuse_ns >= view.clocks.quiet_ns);
  CHECK(kept.allocated_bytes().value() == 0);
  CHECK(is_zero(Mapping::map(kept.fd(), kept.size_bytes(), MapAccess::ReadOnly).value()));
}

TEST_CASE("broker: a token verifies only with the key of its own worker") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  FakeWorker other(broker.socket(), "w1");
  control::Client client = broker.connect();
  broker.admit(client, "a");

  const auto acquired = broker.acquire(client, "a").value();

  const bool first = acquired.worker == "w0";
  CHECK(verify_token(first ? worker.token_key() : other.token_key(), acquired.token).has_value());
  CHECK_FALSE(
      verify_token(first ? other.token_key() : worker.token_key(), acquired.token).has_value());
}

TEST_CASE_METHOD(BrokerWithWorker, "broker: memory touched after its fence is never lent again") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  worker.write_before_unmap();

  broker.revoke(client, lease).value();

  REQUIRE(eventually([&] { return broker.status(client).quarantined_bytes == 2u << 20; }));
  CHECK(broker.status(client).free_bytes == 62u << 20);
}

TEST_CASE_METHOD(
    BrokerWithWorker,
    "broker: a stopping broker scrubs revoked memory even if other processes hold it") {
  std::vector<UniqueFd> kept;
  for (int i = 0; i < 16; ++i) {
    const auto acquired = broker.acquire(client, "a");
    REQUIRE(acquired);
    std::ranges::move(worker.copies_of(acquired->lease), std::back_inserter(kept));
    const auto mapping = Mapping::map(kept.back(), 2u << 20, MapAccess::ReadWrite).value();
    std::fill_n(mapping.data(), mapping.size_bytes(), std::byte{0x5a});
  }

  broker.signal(SIGTERM);
  CHECK(broker.wait() == 0);

  for (UniqueFd& fd : kept) {
    CHECK(MemoryObject::adopt(std::move(fd)).value().allocated_bytes().value() == 0);
  }
}

TEST_CASE("broker: the exit of a worker killed inside a unit is proof of the fence") {
  BrokerProcess broker;
  ForkedProcess worker = start_stuck_worker(broker.socket());
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  broker.revoke(client, lease).value();
  REQUIRE(broker.view(client, lease).state == LeaseState::Revoked);

  worker.kill();

  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(broker.view(client, lease).proof == "ProcessExit");
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
}

TEST_CASE_METHOD(BrokerWithStuckWorker,
                 "broker: a worker that gives no proof within the fence timeout is killed") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;

  broker.revoke(client, lease).value();

  CHECK(worker.wait() == SIGKILL);
  CHECK(eventually([&] { return broker.view(client, lease).proof == "ProcessExit"; }));
}

TEST_CASE_METHOD(BrokerWithStuckWorker,
                 "broker: an acquire on a stopped worker ends with TimedOut") {
  REQUIRE(::kill(worker.pid(), SIGSTOP) == 0);
  REQUIRE(eventually([&] { return is_stopped(worker.pid()); }));

  const auto acquired = broker.acquire(client, "a");

  REQUIRE_FALSE(acquired);
  CHECK(acquired.error().code == Errc::TimedOut);
  CHECK(worker.wait() == SIGKILL);
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
}

TEST_CASE("broker: each start derives a different worker key from the stored key") {
  const auto key_of_worker = [](const std::string& state_dir) {
    BrokerProcess broker({"--state-dir", state_dir});
    return FakeWorker(broker.socket(), "w0").token_key();
  };
  const auto state = TemporaryDirectory::create("state").value();
  const TokenKey first = key_of_worker(state.path());
  CHECK(key_of_worker(state.path()) != first);
}

TEST_CASE("broker: a connection that sends descriptors is closed, and no other connection is") {
  BrokerProcess broker;
  control::Client client = broker.connect();
  control::Client sender = broker.connect();
  control::Payload payload;
  payload.fds.emplace_back(::dup(STDIN_FILENO));

  const auto answer = sender.call("status", std::move(payload));

  REQUIRE_FALSE(answer);
  CHECK(sender.call("status", {}).error().code == Errc::ConnectionLost);
  CHECK(broker.status(client).isolation == "no-worker");
}

TEST_CASE_METHOD(
    BrokerWithWorker,
    "broker: a closed socket of a worker that keeps decoding is not proof of a fence") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  worker.begin_unit();

  worker.disconnect();

  REQUIRE(eventually([&] { return broker.view(client, lease).state != LeaseState::Live; }));
  for (int asked = 0; asked < 20; ++asked) {
    REQUIRE(broker.view(client, lease).state == LeaseState::Revoked);
  }
  CHECK(broker.view(client, lease).reason == RevokeReason::WorkerGone);
  worker.end_unit();
  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(broker.view(client, lease).proof == "LaunchQuiet");
  CHECK(broker.status(client).scrubbing_bytes > 0);  // the worker may still map the memory
}

TEST_CASE_METHOD(BrokerWithWorker, "broker: a holder that disconnects loses its lease") {
  LeaseId lease;
  {
    control::Client holder = broker.connect();
    lease = broker.acquire(holder, "a").value().lease;
  }
  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(broker.view(client, lease).reason == RevokeReason::HolderGone);
}

TEST_CASE("broker: callers of a killed broker receive ConnectionLost") {
  BrokerProcess broker;
  control::Client client = broker.connect();
  broker.signal(SIGKILL);
  CHECK(broker.wait() == 128 + SIGKILL);
  const auto answer = client.call("status", {});
  REQUIRE_FALSE(answer);
  CHECK(answer.error().code == Errc::ConnectionLost);
}

TEST_CASE_METHOD(BrokerWithWorker,
                 "broker: SIGTERM fences all leases and ends the broker with exit code 0") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;

  broker.signal(SIGTERM);

  CHECK(broker.wait() == 0);
  CHECK(worker.word_of(lease).state() == LeaseState::Fenced);
  CHECK(worker.word_of(lease).reason() == RevokeReason::Operator);
}

TEST_CASE("broker: a refused call has a typed error and the broker keeps serving") {
  BrokerProcess broker;
  control::Client client = broker.connect();
  CHECK(client.call("lease.conjure", {}).error().code == Errc::UnknownMethod);
  CHECK(client.call("lease.renew", {}).error().code == Errc::BadRequest);
  CHECK(broker.acquire(client, "unknown").error().code == Errc::UnknownTenant);
  const wire::WeightsOpen open{.file_size_bytes = 1,
                               .layout_digest = std::string(64, 'a'),
                               .size_bytes = 1,
                               .request_id = next_request_id()};
  CHECK(client.call("weights.open", {open.to_json(), {}}).error().code == Errc::PermissionDenied);
  CHECK(broker.status(client).isolation == "no-worker");
}

TEST_CASE("broker: another user may call neither operator nor worker methods") {
  if (!can_change_user()) return;
  BrokerProcess broker;
  const std::string refusals = as_user(kNobody, [&] {
    control::Client client = broker.connect();
    const wire::WorkerAttach attach{.worker = "w", .request_id = {"r"}};
    return outcome(client.call("status", {})) + " " +
           outcome(client.call("worker.attach", {attach.to_json(), {}}));
  });
  CHECK(refusals == "PermissionDenied PermissionDenied");
}

TEST_CASE("broker: a capacity beyond the machine's memory is refused at start") {
  const std::string option = GENERATE("--capacity", "--weights-capacity");
  CHECK(run_broker_once({option, "1PiB"}) == exit_code(Errc::BadRequest));
  CHECK(run_broker_once({"--capacity", "1GiB", "--max-extents", "16384", "--swap-capacity",
                         "8TiB"}) == exit_code(Errc::BadRequest));
}

TEST_CASE("broker: a usage error ends with exit code 2") {
  CHECK(run_broker_once({"--capacity", "plenty"}) == 2);
  CHECK(run_broker_once({"--no-such-option"}) == 2);
}
