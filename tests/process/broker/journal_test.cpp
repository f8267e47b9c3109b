/// A broker that is killed and restarted with its state directory, but without kept descriptors.
#include <signal.h>
#include <sqlite3.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"

using namespace leasehold;

namespace {

std::vector<std::string> keeping_state_in(const TemporaryDirectory& state) {
  return {"--state-dir", state.path(), "--fence-timeout-ms", "3600000"};
}

/// The broker cannot write its high-water marks, so its journal refuses the first grant.
class HighWaterMarksUnwritable {
 public:
  explicit HighWaterMarksUnwritable(const TemporaryDirectory& state)
      : obstacle_(state.path() / "high_water_marks.new") {
    std::filesystem::create_directories(obstacle_ / "full");
  }
  ~HighWaterMarksUnwritable() { std::filesystem::remove_all(obstacle_); }
  HighWaterMarksUnwritable(const HighWaterMarksUnwritable&) = delete;
  HighWaterMarksUnwritable& operator=(const HighWaterMarksUnwritable&) = delete;

 private:
  std::filesystem::path obstacle_;
};

/// Simulates a full disk: the broker's files cannot grow beyond the journal's current size.
void fill_disk_of(const BrokerProcess& broker, const TemporaryDirectory& state) {
  rlimit limit{};
  REQUIRE(::prlimit(broker.pid(), RLIMIT_FSIZE, nullptr, &limit) == 0);
  limit.rlim_cur = std::filesystem::file_size(state.path() / "journal.db-wal");
  REQUIRE(::prlimit(broker.pid(), RLIMIT_FSIZE, &limit, nullptr) == 0);
}

/// Counts the revocations in the audit chain.
int recorded_revocations(const TemporaryDirectory& state) {
  sqlite3* journal = nullptr;
  REQUIRE(sqlite3_open((state.path() / "journal.db").c_str(), &journal) == SQLITE_OK);
  int count = 0;
  const auto add = [](void* to, int, char** values, char**) {
    *static_cast<int*>(to) = std::stoi(values[0]);
    return 0;
  };
  const char* sql = "SELECT count(*) FROM audit_record WHERE content->>'record'='revocation'";
  REQUIRE(sqlite3_exec(journal, sql, add, &count, nullptr) == SQLITE_OK);
  sqlite3_close(journal);
  return count;
}

}  // namespace

TEST_CASE("broker: a stop records the revocations of more leases than one batch has") {
  const auto state = TemporaryDirectory::create("state").value();
  std::vector<std::string> arguments = keeping_state_in(state);
  arguments.insert(arguments.end(), {"--capacity", "256MiB"});
  BrokerProcess broker(arguments);
  FakeWorker worker(broker.socket(), "w");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  constexpr int kLeases = 70;
  for (int i = 0; i < kLeases; ++i) REQUIRE(broker.acquire(client, "a").has_value());
  broker.signal(SIGTERM);
  CHECK(broker.wait() == 0);
  CHECK(recorded_revocations(state) == kLeases);
}

TEST_CASE("broker: a restarted broker knows its tenants and repeats the reply to an acquire") {
  const auto state = TemporaryDirectory::create("state").value();
  BrokerProcess broker(keeping_state_in(state));
  const wire::LeaseAcquire acquire{.tenant = {"a"}, .request_id = {"only-once"}};
  ForkedProcess worker = start_stuck_worker(broker.socket());
  {
    control::Client client = broker.connect();
    broker.admit(client, "a");
  }
  control::Client holder = broker.connect();
  REQUIRE(holder.call("lease.acquire", {acquire.to_json(), {}}).has_value());

  broker.kill_and_restart();

  control::Client client = broker.connect();
  CHECK(broker.status(client).tenants == 1);
  // The reply names the same lease, which was revoked because the table was lost.
  const auto again = client.call("lease.acquire", {acquire.to_json(), {}});
  REQUIRE_FALSE(again);
  CHECK(again.error().code == Errc::LeaseRevoked);
}

TEST_CASE("broker: without kept descriptors memory is free only after the old worker exits") {
  const auto state = TemporaryDirectory::create("state").value();
  BrokerProcess broker(keeping_state_in(state));
  ForkedProcess worker = start_stuck_worker(broker.socket());
  control::Client holder = broker.connect();
  broker.admit(holder, "a");
  const LeaseId lease = broker.acquire(holder, "a").value().lease;

  broker.kill_and_restart();

  control::Client client = broker.connect();
  const wire::LeaseView view = broker.view(client, lease);
  CHECK(view.state == LeaseState::Revoked);
  CHECK(view.reason == RevokeReason::WorkerReplaced);
  for (int asked = 0; asked < 20; ++asked) {
    REQUIRE(broker.status(client).free_bytes < 64u << 20);
  }
  worker.kill();
  REQUIRE(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
  CHECK(broker.view(client, lease).proof == "ProcessExit");
}

TEST_CASE("broker: repeated restarts never reuse a generation or a worker key") {
  const auto state = TemporaryDirectory::create("state").value();
  BrokerProcess broker(keeping_state_in(state));
  std::uint64_t newest = 0;
  std::optional<TokenKey> last_key;
  for (int start = 0; start < 3; ++start) {
    {
      FakeWorker worker(broker.socket(), "w" + std::to_string(start));
      CHECK(worker.token_key() != last_key);
      last_key = worker.token_key();
      control::Client client = broker.connect();
      broker.admit(client, "a");
      for (int i = 0; i < 3; ++i) {
        const LeaseId lease = broker.acquire(client, "a").value().lease;
        CHECK(lease.generation > newest);
      }
      newest += 1024;
    }
    broker.kill_and_restart();
  }
}

TEST_CASE("broker: without its journal it reuses no generation and no token") {
  const auto state = TemporaryDirectory::create("state").value();
  BrokerProcess broker(keeping_state_in(state));
  const auto granted = [&] {
    const FakeWorker worker(broker.socket(), "w0");
    control::Client client = broker.connect();
    broker.admit(client, "a");
    return broker.acquire(client, "a").value();
  };
  const bool with_high_water_marks = GENERATE(false, true);
  const wire::LeaseAcquired before = granted();

  broker.kill_and_restart([&] {
    for (const char* name : {"journal.db", "journal.db-wal", "journal.db-shm"}) {
      std::filesystem::remove(state.path() / name);
    }
    if (with_high_water_marks) std::filesystem::remove(state.path() / "high_water_marks");
  });

  const wire::LeaseAcquired after = granted();
  CHECK(after.token != before.token);
  if (!with_high_water_marks) CHECK(after.lease.generation > before.lease.generation);
}

TEST_CASE("broker: only one broker can use a state directory") {
  const auto state = TemporaryDirectory::create("state").value();
  const BrokerProcess broker(keeping_state_in(state));
  CHECK(run_broker_once({"--socket", broker.socket() + "2", "--state-dir", state.path()}) ==
        exit_code(Errc::SocketInUse));
}

TEST_CASE("broker: a damaged journal is refused and not overwritten") {
  const auto state = TemporaryDirectory::create("state").value();
  const auto journal = state.path() / "journal.db";
  std::ofstream(journal) << std::string(9000, 'x');
  CHECK(run_broker_once({"--socket", state.path() / "s", "--state-dir", state.path()}) ==
        exit_code(Errc::FileCorrupt));
  CHECK(std::filesystem::file_size(journal) == 9000);
}

TEST_CASE("broker: memory is not sent while its grant cannot be journaled") {
  const auto state = TemporaryDirectory::create("state").value();
  BrokerWithWorker started(keeping_state_in(state));
  auto& [broker, worker, client] = started;
  CHECK(broker.status(client).journal_faults == 0);
  {
    const HighWaterMarksUnwritable unwritten(state);
    for (int tries = 0; tries < 2; ++tries) {
      const auto refused = broker.acquire(client, "a");
      REQUIRE_FALSE(refused.has_value());
      CHECK(refused.error().detail.find("high_water_marks") != std::string::npos);
    }
    CHECK(worker.granted() == 0);
    CHECK(broker.status(client).journal_faults >= 2);  // the ends of the leases, too
    CHECK(eventually([&] { return broker.status(client).free_bytes == 64u << 20; }));
  }
  CHECK(broker.acquire(client, "a").has_value());
  CHECK(worker.granted() == 1);
}

TEST_CASE("broker: weights are not opened while their engine lease cannot be journaled") {
  const auto state = TemporaryDirectory::create("state").value();
  const BrokerProcess broker(keeping_state_in(state));
  FakeWorker worker(broker.socket(), "w0");
  {
    const HighWaterMarksUnwritable unwritten(state);
    const auto refused = worker.open_weights();
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().detail.find("high_water_marks") != std::string::npos);
  }
  CHECK(worker.open_weights().has_value());
}

TEST_CASE("broker: on a full disk opening published weights fails with DiskFull") {
  ::signal(SIGXFSZ, SIG_IGN);  // inherited by the broker, whose writes beyond the limit then fail
  const auto state = TemporaryDirectory::create("state").value();
  BrokerProcess broker(keeping_state_in(state));
  FakeWorker loader(broker.socket(), "w0");
  FakeWorker other(broker.socket(), "w1");
  const RegionId region = loader.open_weights().value().region;
  loader.publish_weights(region).value();

  fill_disk_of(broker, state);

  const auto refused = other.open_weights();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::DiskFull);
  CHECK(refused.error().detail.find("make room") != std::string::npos);
  control::Client client = broker.connect();
  CHECK(broker.status(client).workers == 2);
}
