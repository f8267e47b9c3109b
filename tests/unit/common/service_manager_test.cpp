#include "common/machine/service_manager.hpp"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <catch2/catch.hpp>

#include "common/machine/unique_fd.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

/// A bound socket that $NOTIFY_SOCKET names, read by `receive` only.
class Manager {
 public:
  Manager() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path_.copy(address.sun_path, sizeof(address.sun_path) - 1);
    REQUIRE(::bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);
    ::setenv("NOTIFY_SOCKET", path_.c_str(), 1);
  }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;
  ~Manager() { ::unsetenv("NOTIFY_SOCKET"); }

  /// The oldest message; empty if there is none.
  std::string receive() const {
    char received[64];
    const ssize_t size = ::recv(socket_.get(), received, sizeof(received), MSG_DONTWAIT);
    return {received, static_cast<std::size_t>(std::max<ssize_t>(0, size))};
  }

 private:
  TemporaryDirectory directory_ = TemporaryDirectory::create("notify").value();
  std::string path_ = directory_.path() / "notify";
  UniqueFd socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

}  // namespace

TEST_CASE("service manager: a state arrives at the socket that it named") {
  const Manager manager;
  notify_service_manager("READY=1\nSTATUS=Serving");
  CHECK(manager.receive() == "READY=1\nSTATUS=Serving");
}

TEST_CASE("service manager: one that does not read loses messages and stops no program") {
  const Manager manager;
  const UniqueFd file(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  for (int i = 0; i < 10'000; ++i) notify_service_manager("WATCHDOG=1");
  const auto kept = send_to_service_manager("FDSTORE=1", file);
  REQUIRE_FALSE(kept);
  CHECK(kept.error().code == Errc::TimedOut);
  while (!manager.receive().empty()) {
  }
  notify_service_manager("WATCHDOG=1");
  CHECK(manager.receive() == "WATCHDOG=1");
}

TEST_CASE("service manager: without one, or where it does not listen, nothing happens") {
  ::unsetenv("NOTIFY_SOCKET");
  notify_service_manager("READY=1");
  ::setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
  notify_service_manager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}
