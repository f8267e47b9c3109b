// A broker that has reached a limit of its process or its disk keeps its operators.
#include <sys/resource.h>
#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <iterator>
#include <memory>
#include <vector>

#include "tests/process/broker/broker_process.hpp"
#include "tests/process/broker/fake_worker.hpp"
#include "tests/process/broker/forked_process.hpp"

using namespace leasehold;

namespace {

std::size_t open_descriptors(pid_t pid) {
  namespace fs = std::filesystem;
  const fs::directory_iterator entries("/proc/" + std::to_string(pid) + "/fd");
  return static_cast<std::size_t>(std::distance(entries, fs::directory_iterator()));
}

void limit_process(pid_t pid, __rlimit_resource resource, rlim_t most) {
  const rlimit limit{most, most};
  REQUIRE(::prlimit(pid, resource, &limit, nullptr) == 0);
}

}  // namespace

TEST_CASE("security: an operator's revoke is answered by a broker without a free descriptor") {
  if (!can_change_user()) return;
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client holder = broker.connect();
  broker.admit(holder, "a");
  const LeaseId lease = broker.acquire(holder, "a").value().lease;
  constexpr std::size_t kFree = 2;
  limit_process(broker.pid(), RLIMIT_NOFILE, open_descriptors(broker.pid()) + kFree);
  const ForkedProcess strangers(kNobody, [&] {
    static std::vector<Result<control::Client>> connections;
    for (int i = 0; i < 32; ++i) connections.push_back(control::Client::connect(broker.socket()));
  });

  control::Client operator_connection = broker.connect();
  broker.revoke(operator_connection, lease).value();

  CHECK(eventually(
      [&] { return broker.view(operator_connection, lease).state == LeaseState::Fenced; }));
}

TEST_CASE("security: a file size limit is a full disk, and the broker keeps serving") {
  const auto state = TemporaryDirectory::create("state").value();
  BrokerProcess broker({"--state-dir", state.path()});
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  const LeaseId lease = broker.acquire(client, "a").value().lease;
  limit_process(broker.pid(), RLIMIT_FSIZE,
                std::filesystem::file_size(state.path() / "journal.db-wal"));

  const auto refused = broker.acquire(client, "a");
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == Errc::DiskFull);
  broker.revoke(client, lease).value();
  CHECK(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
}

TEST_CASE("security: a state directory that others may write to is refused") {
  const auto state = TemporaryDirectory::create("state").value();
  const auto socket = TemporaryDirectory::create("socket").value();
  const mode_t mode = GENERATE(0777, 0770, 0702);
  REQUIRE(::chmod(state.path().c_str(), mode) == 0);
  CHECK(run_broker_once({"--socket", socket.file("s"), "--state-dir", state.path()}) ==
        exit_code(Errc::PermissionDenied));
}

TEST_CASE("security: idle connections of four users do not lock out a fifth") {
  if (!can_change_user()) return;
  BrokerProcess broker;
  FakeWorker worker(broker.socket(), "w0");
  control::Client client = broker.connect();
  broker.admit(client, "a");
  std::vector<std::unique_ptr<ForkedProcess>> strangers;
  for (const uid_t uid : {kNobody, kNobody - 1, kNobody - 2, kNobody - 3}) {
    strangers.push_back(std::make_unique<ForkedProcess>(uid, [&] {
      static std::vector<Result<control::Client>> connections;
      for (int i = 0; i < 256; ++i) {
        connections.push_back(control::Client::connect(broker.socket()));
      }
    }));
  }
  const std::string answer = as_user(kNobody - 4, [&] {
    control::Client tenant = broker.connect();
    const auto acquired = broker.acquire(tenant, "a");
    return acquired ? "acquired" : acquired.error().detail;
  });
  CHECK(answer == "acquired");
}
