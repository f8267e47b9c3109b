#include "common/service_manager.hpp"

#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <catch2/catch.hpp>

#include "common/temporary_directory.hpp"
#include "common/unique_fd.hpp"

using namespace leasehold;

TEST_CASE("service manager: a state arrives at the socket that it named") {
  const TemporaryDirectory directory = TemporaryDirectory::create("notify").value();
  const std::string path = directory.path() / "notify";
  const UniqueFd manager(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof(address.sun_path) - 1);
  REQUIRE(::bind(manager.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0);

  ::setenv("NOTIFY_SOCKET", path.c_str(), 1);
  notify_service_manager("READY=1\nSTATUS=Serving");
  ::unsetenv("NOTIFY_SOCKET");
  char received[64];
  const ssize_t size = ::recv(manager.get(), received, sizeof(received), MSG_DONTWAIT);
  REQUIRE(size > 0);
  CHECK(std::string(received, static_cast<std::size_t>(size)) == "READY=1\nSTATUS=Serving");
}

TEST_CASE("service manager: without one, or where it does not listen, nothing happens") {
  ::unsetenv("NOTIFY_SOCKET");
  notify_service_manager("READY=1");
  ::setenv("NOTIFY_SOCKET", "/nowhere/notify", 1);
  notify_service_manager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}
