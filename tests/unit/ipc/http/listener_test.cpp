// Where the HTTP servers listen: sockets that a service manager passes.
#include <fmt/format.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <catch2/catch.hpp>
#include <cstdio>
#include <cstdlib>

#include "ipc/http/http_listener.hpp"
#include "tests/support/child_process.hpp"

using namespace leasehold;
using namespace leasehold::http;
namespace asio = boost::asio;
using asio::ip::tcp;

namespace {

constexpr int kFirstPassed = 3;  // sd_listen_fds(3)

/// Listens on the loopback address as a program does that was started with `passed` as its only
/// socket. Returns 0, or prints the error and returns 1.
int listen_with(int passed, const tcp::endpoint& endpoint) {
  ::dup2(passed, kFirstPassed);
  ::setenv("LISTEN_PID", std::to_string(::getpid()).c_str(), 1);
  ::setenv("LISTEN_FDS", "1", 1);
  asio::io_context io;
  const Address address{
      .unix_path = {}, .ip = endpoint.address().to_string(), .port = endpoint.port()};
  const auto listener = Listener::create(io, address, 0600);
  if (!listener) std::fputs(listener.error().detail.c_str(), stderr);
  return listener && (*listener)->listens_on() == fmt::format("{}:{}", address.ip, address.port)
             ? 0
             : 1;
}

}  // namespace

TEST_CASE("http listener: takes the passed socket of its address, and no other") {
  asio::io_context io;
  tcp::acceptor systemds(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  tcp::acceptor others(io, tcp::endpoint(asio::ip::address_v4::loopback(), 0));
  const auto with = [&](tcp::acceptor& passed) {
    return testing::run_in_child(
        [&] { return listen_with(passed.native_handle(), systemds.local_endpoint()); });
  };
  CHECK(with(systemds).exit_code == 0);
  const testing::ChildExit refused = with(others);
  CHECK(refused.exit_code == 1);
  CHECK(refused.error_output.contains("in use"));
}
