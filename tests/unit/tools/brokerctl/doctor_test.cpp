// What `brokerctl doctor` finds in machines that are described, not real.
#include "tools/brokerctl/doctor.hpp"

#include <algorithm>
#include <boost/asio/io_context.hpp>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "ipc/control/transport/peer.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using namespace leasehold::brokerctl;

namespace {

MachineFacts good_machine() {
  return {
      .kernel_release = "6.1.0-28-amd64",
      .memlock_bytes = 64 << 20,
      .is_installed = true,
      .has_broker_user = true,
      .has_worker_user = true,
      .has_monitor_user = true,
      .socket = "/run/leasehold/broker.sock",
      .socket_exists = true,
      .state_dir = "/var/lib/leasehold",
      .state = MachineFacts::Directory{.mode = 0700, .owner = "leasehold", .free_bytes = 64 << 20}};
}

Finding finding(const MachineFacts& facts, const std::string& check) {
  const auto findings = examine(facts);
  const auto found = std::ranges::find(findings, check, &Finding::check);
  REQUIRE(found != findings.end());
  return *found;
}

struct Fault {
  const char* check;
  Grade grade;
  void (*make)(MachineFacts& facts);
  const char* next;
};

const Fault kFaults[]{
    {"kernel", Grade::Note, [](MachineFacts& f) { f.kernel_release = "5.15.0"; }, "apt install"},
    {"kernel", Grade::Wrong, [](MachineFacts& f) { f.kernel_release = "4.19.0-1"; }, "apt install"},
    {"kernel", Grade::Wrong, [](MachineFacts& f) { f.kernel_release = "unknown"; }, "apt install"},
    {"memlock", Grade::Note, [](MachineFacts& f) { f.memlock_bytes = 64 << 10; }, "ulimit -l "},
    {"huge pages", Grade::Note, [](MachineFacts& f) { f.reserved_huge_pages = 8; },
     "sysctl vm.nr_hugepages=0"},
    {"memory nodes", Grade::Note, [](MachineFacts& f) { f.nodes.problem = "online: empty"; },
     "grep . /sys/devices/system/node/online "},
    {"users", Grade::Wrong, [](MachineFacts& f) { f.has_worker_user = false; },
     "systemd-sysusers leasehold.conf"},
    {"users", Grade::Wrong, [](MachineFacts& f) { f.has_monitor_user = false; },
     "systemd-sysusers leasehold.conf"},
    {"socket", Grade::Wrong,
     [](MachineFacts& f) {
       f.socket_error = "refused";
       f.socket_exists = false;
     },
     "systemctl start leasehold-broker.socket"},
    {"socket", Grade::Wrong, [](MachineFacts& f) { f.socket_error = "refused"; },
     "systemctl restart leasehold-broker.socket leasehold-broker || journalctl -u leasehold-broker "
     "-n 20"},
    {"audit key", Grade::Wrong,
     [](MachineFacts& f) { f.audit = wire::AuditState{.key_is_unlinked = true}; },
     "brokerctl audit key && brokerctl audit key rotate"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state->mode = 0755; },
     "chmod 0700 /var/lib/leasehold"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state->owner = "root"; },
     "chown -R leasehold:leasehold /var/lib/leasehold"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state.reset(); }, "install -d"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state->mode = 0500; },
     "chmod 0700 /var/lib/leasehold"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state->is_read_only = true; },
     "mount -o remount,rw "},
    {"state directory", Grade::Wrong,
     [](MachineFacts& f) { f.state->foreign_file = "/x/journal.db"; },
     "chown -R leasehold /var/lib/leasehold"},
    {"state directory", Grade::Note, [](MachineFacts& f) { --f.state->free_bytes; },
     "df -h /var/lib/leasehold"},
    {"state directory", Grade::Note, [](MachineFacts& f) { f.state->free_bytes = 1 << 20; },
     "df -h /var/lib/leasehold"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state->free_bytes = (1 << 20) - 1; },
     "df -h /var/lib/leasehold"},
    {"state directory", Grade::Wrong, [](MachineFacts& f) { f.state->has_free_files = false; },
     "df -i /var/lib/leasehold"},
    {"card", Grade::Wrong, [](MachineFacts& f) { f.has_card_driver = true; }, "nvidia-modprobe"},
};

}  // namespace

TEST_CASE("doctor: a good machine has nothing to fix, and exit code 0") {
  const auto findings = examine(good_machine());
  for (const Finding& each : findings) {
    INFO(each.check << ": " << each.found);
    CHECK(each.grade == Grade::Ok);
    CHECK(each.next.empty());
  }
  CHECK(report(findings).exit_code == 0);
}

TEST_CASE(
    "doctor: each fault is found by its check alone, with a command that fixes it or shows more") {
  for (const Fault& fault : kFaults) {
    MachineFacts facts = good_machine();
    fault.make(facts);
    const Finding found = finding(facts, fault.check);
    INFO(fault.check << ": " << found.found << ": " << found.next);
    CHECK(found.grade == fault.grade);
    CHECK(found.next.starts_with(fault.next));
    const auto all = examine(facts);
    CHECK(std::ranges::count(all, Grade::Ok, &Finding::grade) + 1 ==
          static_cast<std::ptrdiff_t>(all.size()));
    CHECK(report(all).exit_code == (fault.grade == Grade::Wrong ? 1 : 0));
  }
}

TEST_CASE("doctor: with several nodes of memory it says how many threads a worker has by default") {
  MachineFacts facts = good_machine();
  CHECK(finding(facts, "memory nodes").found == "one");
  facts.nodes.nodes = {{0, CpuSet::parse("0-31").value()}, {2, CpuSet::parse("32-63").value()}};
  facts.worker_threads = 63;
  CHECK(finding(facts, "memory nodes").grade == Grade::Ok);
  CHECK(finding(facts, "memory nodes").found ==
        "2; threads of a worker by default: 32 on node 0, 31 on node 2");
  facts.worker_threads = 1;
  CHECK(finding(facts, "memory nodes").found == "2; threads of a worker by default: all on one");
}

TEST_CASE("doctor: without the package, missing users and state are accepted") {
  MachineFacts facts = good_machine();
  facts.is_installed = facts.has_broker_user = facts.has_worker_user = facts.has_monitor_user =
      false;
  facts.state.reset();
  CHECK(finding(facts, "users").grade == Grade::Note);
  CHECK(finding(facts, "users").found.ends_with("only the package needs it, a trial does not"));
  CHECK(finding(facts, "users").next == "less tools/package/README.md");
  CHECK(finding(facts, "state directory").grade == Grade::Ok);
  facts.socket_error = "refused";
  CHECK(finding(facts, "socket").next == "leasehold-broker --socket /run/leasehold/broker.sock");
}

TEST_CASE("doctor: the document has every check") {
  const auto findings = examine(good_machine());
  const auto document = nlohmann::json::parse(report(findings).json);
  REQUIRE(document["items"].size() == findings.size());
  CHECK(document["items"][0]["check"] == "kernel");
  CHECK(document["items"][0]["result"] == "ok");
}

TEST_CASE("doctor: a listener that never answers is a failure, and a refusal is an answer") {
  const TemporaryDirectory directory = TemporaryDirectory::create("doctor").value();
  const std::string path = directory.path() / "broker.sock";
  boost::asio::io_context io{1};
  auto listener = control::listen_on(io, path, 0600).value();  // accepts while `io` runs only
  CHECK(finding(read_machine(path, directory.path()), "socket").grade == Grade::Wrong);

  std::vector<std::shared_ptr<control::Peer>> peers;
  const std::function<void()> accept = [&] {
    listener.async_accept([&](const boost::system::error_code& error, control::Socket socket) {
      if (error) return;
      peers.push_back(control::Peer::create(
          std::move(socket),
          {.on_call = [](const std::string&, control::Payload, control::Responder respond) {
            respond(fail(Errc::PermissionDenied, "not you"));
          }}));
      peers.back()->start();
      accept();
    });
  };
  accept();
  std::jthread serve([&] { io.run(); });
  CHECK(finding(read_machine(path, directory.path()), "socket").grade == Grade::Ok);
  io.stop();
}

TEST_CASE("doctor: this machine is read, and a missing socket is reported") {
  const TemporaryDirectory directory = TemporaryDirectory::create("doctor").value();
  const std::string socket = directory.path() / "broker.sock";
  const MachineFacts facts = read_machine(socket, directory.path());
  CHECK_FALSE(facts.kernel_release.empty());
  CHECK(facts.state);
  CHECK_FALSE(facts.socket_exists);
  CHECK(finding(facts, "socket").grade == Grade::Wrong);
}

TEST_CASE("doctor: the state directory's disk is read, and a file there that cannot be written") {
  const TemporaryDirectory directory = TemporaryDirectory::create("doctor").value();
  const std::string file = directory.path() / "journal.db", copy = file + ".2026-11-01";
  const auto state = [&] {
    return read_machine(directory.path() / "broker.sock", directory.path()).state.value();
  };
  std::ofstream(file) << "x";
  CHECK(state().free_bytes > 0);
  CHECK(state().has_free_files);
  CHECK_FALSE(state().is_read_only);
  std::ofstream(copy) << "x";
  std::filesystem::permissions(copy, std::filesystem::perms::owner_read);
  CHECK(state().foreign_file.empty());
  std::filesystem::permissions(file, std::filesystem::perms::owner_read);
  CHECK(state().foreign_file == file);
}
