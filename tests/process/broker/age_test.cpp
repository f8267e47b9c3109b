/// A broker with a worker of another version, and with state that was restored from a backup.
#include <sqlite3.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

/// As tools/package/OPERATING.md says, while the broker runs.
void back_up(const TemporaryDirectory& state, const TemporaryDirectory& backup) {
  sqlite3* journal = nullptr;
  REQUIRE(sqlite3_open((state.path() / "journal.db").c_str(), &journal) == SQLITE_OK);
  const std::string sql = "VACUUM INTO '" + backup.file("journal.db") + "'";
  REQUIRE(sqlite3_exec(journal, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(journal);
  for (const char* name : {"token.key", "high_water_marks"})
    std::filesystem::copy(state.path() / name, backup.path() / name);
}

void restore(const TemporaryDirectory& backup, const TemporaryDirectory& state) {
  for (const auto& file : std::filesystem::directory_iterator(state.path()))
    std::filesystem::remove(file);
  for (const auto& file : std::filesystem::directory_iterator(backup.path()))
    std::filesystem::copy(file, state.path());
}

struct Use {
  std::uint64_t generation = 0;
  std::uint64_t attachment = 0;
};

/// Attaches a worker and lends it memory. The ids.
Use use(const BrokerProcess& broker, const std::string& name) {
  const FakeWorker worker(broker.socket(), name);
  control::Client client = broker.connect();
  const auto lease = broker.acquire(client, "a").value().lease;
  return {.generation = lease.generation, .attachment = worker.attachment().value};
}

}  // namespace

TEST_CASE("age: a broker refuses a worker of a newer version and serves the one before") {
  BrokerProcess broker;
  control::Client newer = broker.connect();
  const wire::WorkerAttach attach{
      .worker = "w1", .protocol = wire::kWorkerProtocol + 1, .request_id = next_request_id()};
  const auto refused = newer.call("worker.attach", {attach.to_json(), {}});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::ProtocolMismatch);
  CHECK(refused.error().detail.find("upgrade and restart the broker") != std::string::npos);

  const FakeWorker before(broker.socket(), "w0");  // names no protocol
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const auto lease = broker.acquire(client, "a").value().lease;
  CHECK(broker.revoke(client, lease).has_value());
  CHECK(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
}

TEST_CASE("age: a broker whose older state is restored lends under no id that was used since") {
  const auto state = TemporaryDirectory::create("state").value();
  const auto backup = TemporaryDirectory::create("backup").value();
  BrokerProcess broker({"--state-dir", state.path()});
  {
    control::Client client = broker.connect();
    broker.admit(client, "a");
  }
  const Use before = use(broker, "w0");
  back_up(state, backup);
  broker.kill_and_restart();  // a start continues above all that was reserved
  const Use since = use(broker, "w1");
  REQUIRE(since.generation > before.generation);

  broker.kill_and_restart([&] { restore(backup, state); });

  const Use after = use(broker, "w2");
  CHECK(after.generation > since.generation);
  CHECK(after.attachment > since.attachment);
}

TEST_CASE(
    "age: leases that ran when an older state was restored end, and their holder starts anew") {
  const auto state = TemporaryDirectory::create("state").value();
  const auto backup = TemporaryDirectory::create("backup").value();
  BrokerProcess broker({"--state-dir", state.path()});
  control::Client before = broker.connect();
  broker.admit(before, "a");
  FakeWorker worker(broker.socket(), "w0");
  back_up(state, backup);
  const auto lease = broker.acquire(before, "a").value();

  broker.kill_and_restart([&] { restore(backup, state); });

  control::Client after = broker.connect();
  const wire::LeaseHold hold{
      .lease = lease.lease, .token = lease.token, .request_id = next_request_id()};
  const Errc ended = after.call("lease.hold", {hold.to_json(), {}}).error().code;
  CHECK((ended == Errc::BadToken || is_lease_ended(ended)));
  CHECK(worker.reconnect(broker.socket()).error().code == Errc::BrokerLost);
  const FakeWorker next(broker.socket(), "w1");
  CHECK(broker.acquire(after, "a").value().lease.generation > lease.lease.generation);
}
