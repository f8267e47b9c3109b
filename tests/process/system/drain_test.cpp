/// SIGTERM to a worker: it admits nothing new, finishes what runs, and leaves the rest to others.
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>

#include "tests/support/system.hpp"

namespace leasehold::testing {
namespace {

const TenantSpec kStory{.tenant = "ann", .max_tokens = 200};
constexpr std::size_t kReadBefore = 10;

SystemSpec with_timeout_ms(const std::string& ms, const std::string& slow_motion_us = "30") {
  return {.worker_arguments = {"--slow-motion-us", slow_motion_us, "--drain-timeout-ms", ms}};
}

/// Where the programs that are started meanwhile report their states, a few: it holds ten.
class ServiceManager {
 public:
  ServiceManager() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const std::string path = directory_.path() / "notify";
    path.copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  }
  ~ServiceManager() { ::unsetenv("NOTIFY_SOCKET"); }

  /// All that was reported so far.
  const std::string& states() {
    char text[4096];
    ssize_t size = 0;
    while ((size = ::recv(socket_.get(), text, sizeof(text), MSG_DONTWAIT)) > 0)
      states_ += std::string(text, static_cast<std::size_t>(size)) + "\n";
    return states_;
  }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("notify").value();
  UniqueFd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
  std::string states_;
};

bool is_draining(const System& system) {
  return eventually([&] { return count_of(system.worker_log(), "draining") > 0; });
}

}  // namespace

TEST_CASE("drain: a worker finishes its text, refuses a new one, and exits with 0") {
  const auto alone = System::alone(kStory);
  SystemSpec spec = with_timeout_ms("60000", "200");  // the text outlasts the refusal
  spec.start_worker = false;                          // the broker would report too much
  System system(std::move(spec));
  ServiceManager manager;
  system.start_ready_worker("w1");
  system.admit("ann");
  system.admit("bob");
  const auto story = system.start_streaming(kStory, kReadBefore);

  REQUIRE(system.worker().signal(SIGTERM));
  REQUIRE(is_draining(system));
  const auto late = system.start_tenant({.tenant = "bob", .max_tokens = 5});
  CHECK(late->finish() == exit_code(Errc::Draining));

  check_whole(*story, alone);
  CHECK(story->record().leases.size() == 1);
  CHECK(exit_status_of(system.worker()) == 0);
  CHECK(count_of(manager.states(), "STOPPING=1\nEXTEND_TIMEOUT_USEC=75000000\nSTATUS=Draining") ==
        1);
  CHECK(count_of(manager.states(), "STATUS=Draining 1 requests, for at most 60 s") == 1);
}

TEST_CASE("drain: while a worker drains, a new tenant is served by another that is busier") {
  SystemSpec spec = with_timeout_ms("60000", "5000");
  System system(std::move(spec));
  system.start_ready_worker("w2");
  for (const char* tenant : {"ann", "bob", "cid", "dan"}) system.admit(tenant);
  const auto start_on = [&](const std::string& tenant, const std::string& worker) {
    return system.start_streaming(
        {.tenant = tenant, .max_tokens = 480, .more = {"--worker", worker}}, 2);
  };
  const auto draining = start_on("ann", "w1");
  const auto first = start_on("bob", "w2");
  const auto second = start_on("cid", "w2");
  const auto drain_of_w1 = [&] {
    const auto workers = system.view().workers().value();
    for (const wire::WorkerView& worker : workers)
      if (worker.worker == "w1") return worker.drain;
    return std::string("gone");
  };

  REQUIRE(system.worker("w1").signal(SIGTERM));
  REQUIRE(is_draining(system));
  CHECK(eventually([&] { return drain_of_w1() == "draining"; }));
  const auto late = system.start_tenant({.tenant = "dan", .max_tokens = 2});
  CHECK(late->finish() == 0);
  REQUIRE(late->record().leases.size() == 1);
  CHECK(system.lease(late->record().leases[0]).worker == "w2");
  REQUIRE(system.worker("w1").signal(SIGTERM));  // ann's text would take seconds
  CHECK(draining->finish() == exit_code(Errc::Draining));
}

TEST_CASE("drain: a text that outlasts the timeout ends with Draining") {
  System system(with_timeout_ms("100"));
  system.admit("ann");
  TenantSpec longest = kStory;
  longest.max_tokens = 480;
  const auto story = system.start_streaming(longest, 2);
  const auto stopped = [&] { return count_of(system.worker_log(), "drain timeout ends") > 0; };

  REQUIRE(system.worker().signal(SIGTERM));
  CHECK(story->finish() == exit_code(Errc::Draining));
  CHECK(stopped());
  CHECK(exit_status_of(system.worker()) == 0);
}

TEST_CASE("drain: a second SIGTERM, SIGINT, and a timeout of 0 stop at once") {
  const bool has_timeout = GENERATE(true, false);
  const int second = has_timeout ? GENERATE(SIGTERM, SIGINT) : 0;
  System system(with_timeout_ms(has_timeout ? "600000" : "0", "5000"));
  system.admit("ann");
  TenantSpec endless = kStory;  // minutes
  endless.max_tokens = 480;
  const auto story = system.start_streaming(endless, 2);

  REQUIRE(system.worker().signal(SIGTERM));
  if (has_timeout) {
    REQUIRE(is_draining(system));
    REQUIRE(system.worker().signal(second));
  }
  CHECK(story->finish() == exit_code(Errc::Draining));
  CHECK(exit_status_of(system.worker()) == 0);
}

TEST_CASE("drain: a resumable text that is cut continues on the next worker from its records") {
  System system(with_timeout_ms("0"));
  system.admit("ann");
  const auto alone = system.undisturbed({.tenant = "ann", .max_tokens = 400});
  const auto story = system.start_streaming({.tenant = "ann",
                                             .max_tokens = 400,
                                             .rebind = true,
                                             .more = {"--resumable", "--request-id", "story"}},
                                            kReadBefore);
  REQUIRE(system.worker().signal(SIGTERM));
  CHECK(exit_status_of(system.worker()) == 0);
  system.start_ready_worker("w1");

  check_whole(*story, alone);
  CHECK(count_of(system.worker_log(), "memory adopted") == 1);
}

}  // namespace leasehold::testing
