// A broker that has reached a limit of its process or its disk keeps its operators.
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <vector>

#include "ipc/control/event_file.hpp"
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

/// The events of a file, as `event.list` shows them without their numbers.
control::Json events_in(const std::string& path) {
  control::Json events = control::Json::array();
  const auto all = events::read_event_file(path).value();
  for (const events::StampedEvent& read : all)
    events.push_back(events::to_json(read.event, read.at));
  return events;
}

/// Without their numbers; fewer when the broker keeps fewer.
control::Json newest_events(control::Client& client, std::size_t count) {
  control::Json all = control::Json::array();
  while (true) {
    const std::uint64_t after = all.empty() ? 0 : all.back().at("sequence").get<std::uint64_t>();
    const auto page = client.call("event.list", {{{"after", after}}, {}}).value().body.at("items");
    if (page.empty()) break;
    all.insert(all.end(), page.begin(), page.end());
  }
  if (all.size() < count) return all;
  control::Json newest = control::Json::array();
  for (auto item = all.end() - static_cast<std::ptrdiff_t>(count); item != all.end(); ++item) {
    item->erase("sequence");
    newest.push_back(*item);
  }
  return newest;
}

}  // namespace

TEST_CASE_METHOD(
    BrokerWithWorker,
    "security: an operator's revoke is answered by a broker without a free descriptor") {
  if (!can_change_user()) return;
  const LeaseId lease = broker.acquire(client, "a").value().lease;
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
  BrokerWithWorker started({"--state-dir", state.path()});
  auto& [broker, worker, client] = started;
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

TEST_CASE_METHOD(BrokerWithWorker,
                 "security: idle connections of four users do not lock out a fifth") {
  if (!can_change_user()) return;
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

TEST_CASE("security: a tenant that acquires in a loop fills two files of --event-log-bytes") {
  const auto directory = TemporaryDirectory::create("log").value();
  const std::string path = directory.file("events.jsonl");
  constexpr std::uintmax_t kMaxBytes = 64 << 10;
  BrokerWithWorker started({"--event-log", path, "--event-log-bytes", "64KiB"});
  auto& [broker, worker, client] = started;
  const auto acquire_and_revoke = [&] {
    broker.revoke(client, broker.acquire(client, "a").value().lease).value();
  };

  acquire_and_revoke();
  const control::Json first = events_in(path).at(0);
  const auto first_is_gone = [&] {
    return std::filesystem::exists(path + ".1") && events_in(path + ".1").at(0) != first;
  };
  for (int i = 0; i < 2000 && !first_is_gone(); ++i) acquire_and_revoke();

  CHECK(first_is_gone());
  CHECK(std::filesystem::file_size(path) <= kMaxBytes);
  CHECK(std::filesystem::file_size(path + ".1") <= kMaxBytes);
  const std::filesystem::directory_iterator files(directory.path());
  CHECK(std::distance(begin(files), end(files)) == 2);
  CHECK(eventually([&] {
    control::Json in_files = events_in(path + ".1");
    const control::Json later = events_in(path);
    in_files.insert(in_files.end(), later.begin(), later.end());
    return in_files == newest_events(client, in_files.size());
  }));
}

TEST_CASE("security: a full disk under the event log costs no decision") {
  const auto directory = TemporaryDirectory::create("log").value();
  const std::string path = directory.file("events.jsonl");
  constexpr std::size_t kLimitBytes = 8 << 20;  // more than a memory object of a lease
  {
    const std::string event =
        events::to_json(events::LeaseStateChanged{.lease = {5, 1}}, TimePoint{1}).dump();
    std::ofstream(path) << event << std::string(kLimitBytes - event.size() - 1, ' ') << '\n';
  }
  BrokerWithWorker started({"--event-log", path});
  auto& [broker, worker, client] = started;
  const auto size_bytes = std::filesystem::file_size(path);
  limit_process(broker.pid(), RLIMIT_FSIZE, size_bytes + 10);

  const LeaseId lease = broker.acquire(client, "a").value().lease;
  broker.revoke(client, lease).value();

  CHECK(eventually([&] { return broker.view(client, lease).state == LeaseState::Fenced; }));
  CHECK(std::filesystem::file_size(path) == size_bytes);  // and no part of a line
}

TEST_CASE("security: users that may run workers have equal shares of the memory for weights") {
  const std::vector<std::string> one_user{"--weights-capacity", "1MiB", "--worker-uid",
                                          std::to_string(::getuid())};
  BrokerProcess for_one(one_user);
  FakeWorker alone(for_one.socket(), "w0");
  CHECK(alone.open_weights());  // 1 MiB

  std::vector<std::string> two_users = one_user;
  two_users.insert(two_users.end(), {"--worker-uid", std::to_string(kNobody)});
  BrokerProcess for_two(two_users);
  FakeWorker worker(for_two.socket(), "w0");
  const auto refused = worker.open_weights();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == Errc::PoolExhausted);
  CHECK(refused.error().detail.find("of 524288 bytes") != std::string::npos);
}
