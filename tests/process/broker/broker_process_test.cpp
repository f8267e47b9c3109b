#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <filesystem>

#include "ipc/region/mapping.hpp"
#include "ipc/region/memory_object.hpp"
#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

void wait_until_ready(control::Client& client) {
  REQUIRE(eventually([&] {
    const auto workers = client.call("worker.list", {}).value().body.at("items");
    return !workers.empty() && workers.at(0).at("state") == "ready";
  }));
}

bool is_zero(const Mapping& mapping) {
  return std::all_of(mapping.data(), mapping.data() + mapping.size_bytes(),
                     [](std::byte byte) { return byte == std::byte{0}; });
}

}  // namespace

TEST_CASE("broker: a revoked lease is fenced when its unit ends, and its memory is then zero") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
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

TEST_CASE("broker: memory touched after its fence is never lent again") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  worker.write_before_unmap();

  broker.revoke(client, lease).value();

  REQUIRE(eventually([&] { return broker.status(client).quarantined_bytes == 2u << 20; }));
  CHECK(broker.status(client).free_bytes == 62u << 20);
}

TEST_CASE("broker: a stopping broker scrubs revoked memory even if other processes hold it") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
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
  const pid_t worker = start_stuck_worker(broker.socket());
  control::Client client = broker.connect();
  wait_until_ready(client);
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  broker.revoke(client, lease).value();
  REQUIRE(broker.view(client, lease).state == LeaseState::Revoked);

  ::kill(worker, SIGKILL);
  ::waitpid(worker, nullptr, 0);

  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(broker.view(client, lease).proof == "ProcessExit");
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
}

TEST_CASE("broker: a worker that gives no proof within the fence timeout is killed") {
  BrokerProcess broker({"--fence-timeout-ms", "300"});
  const pid_t worker = start_stuck_worker(broker.socket());
  control::Client client = broker.connect();
  wait_until_ready(client);
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;

  broker.revoke(client, lease).value();

  int status = 0;
  REQUIRE(::waitpid(worker, &status, 0) == worker);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(eventually([&] { return broker.view(client, lease).proof == "ProcessExit"; }));
}

TEST_CASE("broker: an acquire on a stopped worker ends with TimedOut") {
  BrokerProcess broker({"--fence-timeout-ms", "300"});
  const pid_t worker = start_stuck_worker(broker.socket());
  control::Client client = broker.connect();
  wait_until_ready(client);
  broker.admit(client, "a");
  REQUIRE(::kill(worker, SIGSTOP) == 0);
  REQUIRE(eventually([&] { return is_stopped(worker); }));

  const auto acquired = broker.acquire(client, "a");

  REQUIRE_FALSE(acquired);
  CHECK(acquired.error().code == Errc::TimedOut);
  int status = 0;
  REQUIRE(::waitpid(worker, &status, 0) == worker);
  CHECK(WTERMSIG(status) == SIGKILL);
  CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
}

TEST_CASE("broker: each start derives a different worker key from the stored key") {
  const auto key_of_worker = [](const std::string& state_dir) {
    BrokerProcess broker({"--state-dir", state_dir});
    return FakeWorker(broker.socket(), "w0").token_key();
  };
  std::string state_dir = std::filesystem::temp_directory_path() / "leasehold-state-XXXXXX";
  REQUIRE(::mkdtemp(state_dir.data()) != nullptr);
  const TokenKey first = key_of_worker(state_dir);
  CHECK(key_of_worker(state_dir) != first);
  std::filesystem::remove_all(state_dir);
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

TEST_CASE("broker: a closed socket of a worker that keeps decoding is not proof of a fence") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
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

TEST_CASE("broker: a holder that disconnects loses its lease") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client operator_client = broker.connect();
  broker.admit(operator_client, "a");
  LeaseId lease;
  {
    control::Client holder = broker.connect();
    lease = broker.acquire(holder, "a").value().lease;
  }
  REQUIRE(
      eventually([&] { return broker.view(operator_client, lease).state == LeaseState::Fenced; }));
  CHECK(broker.view(operator_client, lease).reason == RevokeReason::HolderGone);
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

TEST_CASE("broker: SIGTERM fences all leases and ends the broker with exit code 0") {
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
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
  if (::geteuid() != 0) {
    WARN("skipped: needs root to run a process as another user");
    return;
  }
  BrokerProcess broker;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    auto client = control::Client::connect(broker.socket());
    if (!client) ::_exit(2);
    const auto status = client->call("status", {});
    const wire::WorkerAttach attach{.worker = "w", .request_id = {"r"}};
    const auto attached = client->call("worker.attach", {attach.to_json(), {}});
    const bool refused = !status && status.error().code == Errc::PermissionDenied && !attached &&
                         attached.error().code == Errc::PermissionDenied;
    ::_exit(refused ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("broker: one user cannot take every connection") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to run a process as another user");
    return;
  }
  BrokerProcess broker;
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setuid(65534) != 0) ::_exit(1);
    boost::asio::io_context io;
    std::vector<control::Socket> held;
    for (int i = 0; i < 255; ++i) held.push_back(control::connect_to(io, broker.socket()).value());
    auto last = control::Client::connect(broker.socket());
    auto beyond = control::Client::connect(broker.socket());
    if (!last || !beyond) ::_exit(2);
    const auto served = last->call("status", {});
    const auto refused = beyond->call("status", {});
    const bool right = !served && served.error().code == Errc::PermissionDenied && !refused &&
                       refused.error().code == Errc::ConnectionLost;
    ::_exit(right ? 0 : 3);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("broker: a usage error ends with exit code 2") {
  CHECK(run_broker_once({"--capacity", "plenty"}) == 2);
  CHECK(run_broker_once({"--no-such-option"}) == 2);
}
