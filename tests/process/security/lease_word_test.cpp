// Only the broker can write a lease word. Where the kernel cannot prevent a write, the broker
// detects and repairs it.
#include <unistd.h>

#include <catch2/catch.hpp>

#include "ipc/segment/lease_word.hpp"
#include "ipc/table/lease_table.hpp"
#include "ipc/table/table_reader.hpp"
#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"
#include "tests/process/broker/forked_process.hpp"
#include "tests/process/security/attacks.hpp"

using namespace leasehold;

namespace {

struct Attached {
  control::Client client;
  UniqueFd table;
  std::uint32_t slots = 0;
};

Attached attach(const std::string& socket, const std::string& name) {
  auto client = control::Client::connect(socket).value();
  const wire::WorkerAttach ask{.worker = name, .request_id = {"attach-" + name}};
  control::Payload reply = client.call("worker.attach", {ask.to_json(), {}}).value();
  const auto attached = wire::WorkerAttached::from_json(reply.body).value();
  return {std::move(client), std::move(reply.fds.at(0)), attached.slot_count};
}

std::map<std::string, int> attack_as_worker(const BrokerProcess& broker, const std::string& name) {
  const Attached worker = attach(broker.socket(), name);
  return attack({.table = worker.table.get(),
                 .size_bytes = table_size_bytes(worker.slots),
                 .broker = broker.pid()});
}

/// Writes to the table through a reopened descriptor, as a worker of the broker's user can.
class Intruder {
 public:
  explicit Intruder(const BrokerProcess& broker) : attached_(attach(broker.socket(), "intruder")) {
    const UniqueFd writable = reopen_for_writing(attached_.table.get());
    REQUIRE(writable);
    mapping_ =
        Mapping::map(writable, table_size_bytes(attached_.slots), MapAccess::ReadWrite).value();
  }
  TableView<std::byte> table() const { return {mapping_->data()}; }

 private:
  Attached attached_;
  std::optional<Mapping> mapping_;
};

std::vector<control::Json> events_named(control::Client& client, const std::string& name) {
  std::vector<control::Json> found;
  const auto reply = client.call("event.list", {}).value();
  for (const auto& event : reply.body.at("items")) {
    if (event.at("event") == name) found.push_back(event);
  }
  return found;
}

}  // namespace

TEST_CASE("security: a worker of another user cannot write a lease word in any known way") {
  if (!can_change_user()) return;
  BrokerProcess broker({"--worker-uid", std::to_string(kNobody), "--worker-uid", "0",
                        "--fence-timeout-ms", "3600000"});
  FakeWorker honest(broker.socket(), "honest");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;

  const auto outcomes = outcomes_from_text(
      as_user(kNobody, [&] { return to_text(attack_as_worker(broker, "stranger")); }));

  CHECK(outcomes.size() == 19);
  for (const auto& [name, error] : outcomes) {
    INFO(name);
    CHECK(error != 0);
  }
  CHECK(honest.word_of(lease) == LeaseWord::make(lease.generation, LeaseState::Live));
  CHECK(broker.status(client).tampered == 0);
  CHECK(broker.view(client, lease).state == LeaseState::Live);
}

TEST_CASE("security: status reports separate users when workers run as another user") {
  if (!can_change_user()) return;
  BrokerProcess broker({"--worker-uid", std::to_string(kNobody), "--fence-timeout-ms", "3600000"});

  const ForkedProcess worker(kNobody, [&] {
    static const Attached attached = attach(broker.socket(), "stranger");  // stays attached
  });

  control::Client client = broker.connect();
  CHECK(broker.status(client).isolation == "separate-users");
}

TEST_CASE_METHOD(
    BrokerWithWorker,
    "security: a table write by a worker of the same user is repaired and ends the lease") {
  const LeaseId revoked = broker.acquire(client, "a").value().lease;
  const LeaseId live = broker.acquire(client, "a").value().lease;
  const LeaseId bystander = broker.acquire(client, "a").value().lease;
  worker.begin_unit();  // keeps the lease in state Revoked
  broker.revoke(client, revoked).value();
  const Intruder intruder(broker);

  intruder.table().slot(revoked.slot).word =
      LeaseWord::make(revoked.generation, LeaseState::Live).bits;
  intruder.table().slot(live.slot).deadline_boottime_ns = INT64_MAX;

  REQUIRE(eventually([&] { return broker.status(client).tampered >= 2; }));
  CHECK(broker.status(client).isolation == "same-user");
  CHECK(worker.word_of(revoked).state() == LeaseState::Revoked);
  CHECK(worker.word_of(revoked).reason() == RevokeReason::Operator);
  CHECK(broker.view(client, live).reason == RevokeReason::WorkerUntrusted);
  CHECK(broker.view(client, bystander).state == LeaseState::Live);
  CHECK(events_named(client, "worker_untrusted").size() == 2);
  CHECK(events_named(client, "worker_untrusted").at(0).at("worker") == "w0");
}

TEST_CASE_METHOD(BrokerWithWorker,
                 "security: a corrupted word, counter or header does not crash the broker") {
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  const Intruder intruder(broker);

  for (std::uint32_t slot = 0; slot < 8; ++slot) intruder.table().slot(slot).word = ~0ull;
  intruder.table().counter(0).revocations = 0;
  intruder.table().header().slot_count = ~0u;
  // Succeeds or fails: the broker may already have detected the tampering and revoked the lease.
  (void)broker.revoke(client, lease);

  REQUIRE(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  REQUIRE(eventually([&] { return broker.status(client).tampered >= 3; }));
  const LeaseId next = broker.acquire(client, "a").value().lease;
  CHECK(worker.word_of(next).state() == LeaseState::Live);
  CHECK(intruder.table().header().slot_count == 4096);
  CHECK(intruder.table().counter(0).revocations > 1);
}

TEST_CASE("security: the attacks open to a process of the same user are known") {
  BrokerProcess broker;

  const auto outcomes = attack_as_worker(broker, "insider");

  for (const auto& [name, error] : outcomes) {
    INFO(name);
    // Root bypasses file modes, and the owner can change them.
    const bool open_to_owner = name == "fchmod" || name == "fchmod, then reopen";
    const bool open_to_root = name == "reopen own descriptor" ||
                              name == "open the broker's descriptors" || name == "pidfd_getfd" ||
                              name == "open the broker's memory" || name == "process_vm_writev" ||
                              name == "ptrace";
    if (open_to_owner) CHECK(error == 0);
    if (!open_to_owner && !(open_to_root && ::geteuid() == 0)) CHECK(error != 0);
  }
  control::Client client = broker.connect();
  CHECK(broker.status(client).tampered == 0);
}
