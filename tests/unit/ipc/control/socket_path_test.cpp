#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "ipc/control/transport/socket_file.hpp"
#include "peer_fixture.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
using control::connect_to;
using control::listen_on;
namespace fs = std::filesystem;

namespace {

mode_t mode_of(const std::string& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_mode & 07777;
}

struct PathFixture {
  const TemporaryDirectory directory = TemporaryDirectory::create("test").value();
  boost::asio::io_context io;
};

template <class T>
Errc code_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  CHECK_FALSE(result.error().detail.empty());
  return result.error().code;
}

}  // namespace

TEST_CASE_METHOD(
    PathFixture,
    "socket path: a listener accepts connections and its file has the requested mode") {
  const mode_t before = ::umask(0077);
  for (const mode_t mode : {mode_t{0600}, mode_t{0660}, mode_t{0666}}) {
    const std::string path = directory.file(std::to_string(mode));
    const auto acceptor = listen_on(io, path, mode);
    REQUIRE(acceptor);
    CHECK(mode_of(path) == mode);
    CHECK(connect_to(io, path).has_value());
  }
  ::umask(before);
}

TEST_CASE_METHOD(PathFixture,
                 "socket path: a second listener gets SocketInUse, the first goes on") {
  const auto first = listen_on(io, directory.file("s"), 0600);
  REQUIRE(first);
  CHECK(code_of(listen_on(io, directory.file("s"), 0600)) == Errc::SocketInUse);
  CHECK(connect_to(io, directory.file("s")).has_value());
}

TEST_CASE_METHOD(PathFixture,
                 "socket path: a process that keeps the directory locked does not stop a start") {
  const UniqueFd foreign(::open(directory.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  REQUIRE(::flock(foreign.get(), LOCK_EX) == 0);
  const auto acceptor = listen_on(io, directory.file("s"), 0600);
  REQUIRE(acceptor);
  CHECK(connect_to(io, directory.file("s")).has_value());
}

TEST_CASE_METHOD(PathFixture,
                 "socket path: an adopted listener serves clients that connected before") {
  auto first = listen_on(io, directory.file("s"), 0600);
  REQUIRE(first);
  UniqueFd kept(::dup(first->native_handle()));
  first->close();
  const auto waiting = connect_to(io, directory.file("s"));
  REQUIRE(waiting);

  auto second = control::adopt_listener(io, std::move(kept), directory.file("s"));

  REQUIRE(second);
  boost::system::error_code error;
  const control::Socket accepted = second->accept(error);
  CHECK_FALSE(error);
}

TEST_CASE_METHOD(PathFixture, "socket path: only a listener on that path can be adopted") {
  auto elsewhere = listen_on(io, directory.file("t"), 0600);
  REQUIRE(elsewhere);
  UniqueFd kept(::dup(elsewhere->native_handle()));
  auto connected = connect_to(io, directory.file("t"));
  REQUIRE(connected);

  CHECK(code_of(control::adopt_listener(io, std::move(kept), directory.file("s"))) ==
        Errc::BadRequest);
  UniqueFd no_listener(::dup(connected->native_handle()));
  CHECK(code_of(control::adopt_listener(io, std::move(no_listener), directory.file("t"))) ==
        Errc::BadRequest);
  CHECK(code_of(control::adopt_listener(io, UniqueFd(::dup(0)), directory.file("t"))) ==
        Errc::BadRequest);
}

TEST_CASE_METHOD(PathFixture,
                 "socket path: a stale file refuses connections, and a new listener replaces it") {
  {
    REQUIRE(listen_on(io, directory.file("s"), 0600));
  }
  REQUIRE(fs::exists(directory.file("s")));
  CHECK(code_of(connect_to(io, directory.file("s"))) == Errc::ConnectionRefused);
  const auto again = listen_on(io, directory.file("s"), 0600);
  REQUIRE(again);
  CHECK(connect_to(io, directory.file("s")).has_value());
}

TEST_CASE_METHOD(PathFixture, "socket path: an existing file, directory or link is never removed") {
  std::ofstream(directory.file("file")) << "precious";
  fs::create_directory(directory.file("directory"));
  fs::create_symlink("nowhere", directory.file("link"));
  for (const std::string name : {"file", "directory", "link"}) {
    CAPTURE(name);
    CHECK(code_of(listen_on(io, directory.file(name), 0600)) == Errc::SocketInUse);
    CHECK(fs::symlink_status(directory.file(name)).type() != fs::file_type::not_found);
  }
  CHECK(fs::file_size(directory.file("file")) == 8);
}

TEST_CASE("socket path: a path that cannot be a Unix socket is BadRequest") {
  boost::asio::io_context io;
  using namespace std::string_literals;
  for (const std::string& path : {""s, std::string(108, 'p'), "a\0b"s}) {
    CHECK(code_of(connect_to(io, path)) == Errc::BadRequest);
    CHECK(code_of(listen_on(io, path, 0600)) == Errc::BadRequest);
  }
}

TEST_CASE_METHOD(PathFixture, "socket path: the longest path works") {
  const std::string path = directory.file(std::string(106 - directory.path().string().size(), 'p'));
  REQUIRE(path.size() == 107);
  const auto acceptor = listen_on(io, path, 0600);
  REQUIRE(acceptor);
  CHECK(connect_to(io, path).has_value());
}

TEST_CASE_METHOD(
    PathFixture,
    "socket path: a missing file and a file that is not a socket are different errors") {
  CHECK(code_of(connect_to(io, directory.file("none"))) == Errc::FileNotFound);
  CHECK(code_of(listen_on(io, directory.file("none/s"), 0600)) == Errc::FileNotFound);
  std::ofstream(directory.file("file")) << "x";
  const auto no_socket = connect_to(io, directory.file("file"));
  REQUIRE_FALSE(no_socket);
  CHECK(no_socket.error().code == Errc::ConnectionRefused);
  CHECK(no_socket.error().detail.ends_with("file is not a socket"));
}

TEST_CASE("socket path: connecting and listening without permission are PermissionDenied") {
  if (::geteuid() == 0) {
    WARN("not checked: root may do everything");
    return;
  }
  const auto directory = TemporaryDirectory::create("test").value();
  boost::asio::io_context io;
  const auto acceptor = listen_on(io, directory.file("s"), 0000);
  REQUIRE(acceptor);
  CHECK(code_of(connect_to(io, directory.file("s"))) == Errc::PermissionDenied);
  fs::permissions(directory.path(), fs::perms::owner_read | fs::perms::owner_exec);
  CHECK(code_of(listen_on(io, directory.file("t"), 0600)) == Errc::PermissionDenied);
  fs::permissions(directory.path(), fs::perms::owner_all);
}

TEST_CASE("socket file: its creator removes it, but not the file of a later listener") {
  const auto directory = TemporaryDirectory::create("test").value();
  boost::asio::io_context io;
  const std::string path = directory.file("s");
  const auto first = listen_on(io, path, 0600);
  REQUIRE(first);
  const control::SocketFile mine(path);
  fs::remove(path);
  CHECK_FALSE(mine.remove());
  const auto second = listen_on(io, path, 0600);
  REQUIRE(second);
  const control::SocketFile theirs(path);

  CHECK_FALSE(mine.remove());

  CHECK(connect_to(io, path).has_value());
  CHECK(theirs.remove());
  CHECK_FALSE(fs::exists(path));
}
