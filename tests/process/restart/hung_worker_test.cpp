/// A worker that hangs while none of its leases is revoked: after the worker timeout it is killed,
/// and before that it can continue without loss.
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/process/restart/restartable.hpp"
#include "tests/support/required.hpp"

namespace leasehold::testing {
namespace {

TenantSpec rebinding(TenantSpec spec) {
  spec.rebind = true;
  return spec;
}

/// True when the broker has emitted `worker_unresponsive`.
bool has_warned(const System& system) {
  std::ifstream log(system.event_logs().front().path);
  for (std::string line; std::getline(log, line);) {
    if (line.find("worker_unresponsive") != std::string::npos) return true;
  }
  return false;
}

}  // namespace

TEST_CASE("hung worker: its tenant rebinds to another worker without losing a token") {
  const auto alone = System::alone(kEndless);
  System system({.broker_arguments = {"--worker-timeout-ms", "2000"}});
  system.admit("cat", {"--ttl-ms", "60000"});
  const auto cat = system.start_streaming(rebinding(kEndless), 5);
  const LeaseId lease = cat->record().leases.back();
  system.start_ready_worker("w2");

  REQUIRE(system.worker().signal(SIGSTOP));

  check_whole(*cat, alone);
  CHECK(exit_status_of(system.worker("w1")) == 128 + SIGKILL);
  CHECK(system.eventually_fenced(lease));
  CHECK(system.lease(lease).reason == RevokeReason::WorkerHung);
  CHECK(system.pool_is_fully_free());
}

/// As root: a broker of another user may not kill it.
TEST_CASE("hung worker: one that the broker may not kill ends when it runs again") {
  constexpr uid_t kNobody = 65534;
  if (::geteuid() != 0) {
    WARN("needs root");
    return;
  }
  const auto directory = TemporaryDirectory::create("unkillable").value();
  ::chmod(directory.path().c_str(), 0777);
  const ProgramStarter programs(program_dir(), directory.path());

  Child broker = required(programs.start_broker(
      {.arguments = {"--capacity", "64MiB", "--worker-timeout-ms", "2000", "--worker-uid", "0"},
       .uid = kNobody}));
  const auto log = [&](const std::string& name) { return file_bytes(programs.log_path(name)); };
  Child worker = required(programs.start_worker("w1", bundled_model_path(), {}));
  REQUIRE(eventually([&] { return log("worker-w1").contains("ready name=w1"); }));

  REQUIRE(worker.signal(SIGSTOP));
  REQUIRE(eventually([&] { return log("broker").contains("could not kill a worker"); }));
  CHECK_FALSE(log("broker").contains("was killed"));
  REQUIRE(worker.signal(SIGCONT));

  CHECK(exit_status_of(worker) == exit_code(Errc::BrokerLost));
}

TEST_CASE("hung worker: a worker that continues after the warning loses nothing") {
  const auto alone = System::alone(kCat);
  System system({.broker_arguments = {"--worker-timeout-ms", "6000"}});
  system.admit("cat", {"--ttl-ms", "60000"});
  const auto cat = system.start_streaming(kCat, 5);
  REQUIRE(system.worker().signal(SIGSTOP));
  REQUIRE(eventually([&] { return has_warned(system); }));

  REQUIRE(system.worker().signal(SIGCONT));

  check_whole(*cat, alone);
  CHECK(cat->record().leases.size() == 1);
  CHECK_FALSE(system.worker().status());
}

TEST_CASE("hung worker: a worker that hangs while it resumes is killed and its tenant rebinds") {
  const auto alone = System::alone(kCat);
  for (const char* fault : {"worker.resumed:stop", "worker.redelivered:stop"}) {
    CAPTURE(fault);
    Restartable fixture({}, {"--reattach-grace-ms", "60000", "--worker-timeout-ms", "2000"});
    fixture.system.remove_worker("w1");
    fixture.system.start_ready_worker("w3", fault);
    const auto cat = fixture.system.start_streaming(rebinding(kCat), 3);
    const LeaseId lease = cat->record().leases.back();

    fixture.restart_broker();
    fixture.system.start_ready_worker("w2");

    CHECK(exit_status_of(fixture.system.worker("w3")) == 128 + SIGKILL);
    check_whole(*cat, alone);
    CHECK(fixture.system.eventually_fenced(lease));
    CHECK(fixture.system.pool_is_fully_free());
  }
}

TEST_CASE("hung worker: a worker that hangs while it attaches is killed and its name is free") {
  System system({.broker_arguments = {"--worker-timeout-ms", "2000"}, .start_worker = false});
  system.start_worker("w1", "worker.attached:stop");

  CHECK(exit_status_of(system.worker("w1")) == 128 + SIGKILL);

  system.start_worker("w1");
  CHECK(eventually([&] { return system.worker_is_ready("w1"); }));
}

}  // namespace leasehold::testing
