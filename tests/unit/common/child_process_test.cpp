#include "common/machine/child_process.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/machine/process.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

/// Longer than any correct run takes.
constexpr int kLong_ms = 20'000;

int wait_for(Child& child) {
  pollfd entry{child.pidfd().get(), POLLIN, 0};
  REQUIRE(::poll(&entry, 1, kLong_ms) == 1);
  const auto status = child.status();
  REQUIRE(status);
  return *status;
}

std::string first_line(Child& child) {
  std::string line;
  pollfd entry{child.output().get(), POLLIN, 0};
  for (char byte = 0; byte != '\n'; line += byte) {
    REQUIRE(::poll(&entry, 1, kLong_ms) == 1);
    REQUIRE(::read(entry.fd, &byte, 1) == 1);
  }
  return line;
}

}  // namespace

TEST_CASE("child: status is its exit code, or the signal that ended it") {
  const auto directory = TemporaryDirectory::create("test").value();
  auto fails =
      Child::start({.argv = {"/bin/sh", "-c", "exit 7"}, .log_path = directory.file("log")});
  auto dies =
      Child::start({.argv = {"/bin/sh", "-c", "kill -9 $$"}, .log_path = directory.file("log")});

  REQUIRE(fails);
  REQUIRE(dies);
  CHECK(wait_for(*fails) == 7);
  CHECK(wait_for(*dies) == 128 + SIGKILL);
}

TEST_CASE("child: a descriptor that cannot be handed over keeps the program from starting") {
  const auto directory = TemporaryDirectory::create("test").value();
  auto child = Child::start({.argv = {"/bin/sh", "-c", "exit 0"},
                             .log_path = directory.file("log"),
                             .inherited_fds = {{.name = "closed", .fd = -1}}});
  REQUIRE(child);
  CHECK(wait_for(*child) == 127);
}

TEST_CASE("child: a start that gets no descriptor for the process leaves no process") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string log_path = directory.file("log");
  UniqueFd first(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  UniqueFd second(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_NOFILE, &before) == 0);
  // Room for the log and /dev/null only.
  rlimit limit = before;
  limit.rlim_cur = static_cast<rlim_t>(second.get()) + 1;
  first.reset();
  second.reset();
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  const auto child = Child::start({.argv = {"/bin/sleep", "1000"}, .log_path = log_path});
  REQUIRE(::setrlimit(RLIMIT_NOFILE, &before) == 0);

  REQUIRE_FALSE(child);
  CHECK(child.error().detail.find("pidfd_open") != std::string::npos);
  const pid_t remaining = ::waitpid(-1, nullptr, WNOHANG);
  const int why = errno;
  CHECK(remaining == -1);
  CHECK(why == ECHILD);
}

TEST_CASE("child: it ends with the object that owns it") {
  const auto directory = TemporaryDirectory::create("test").value();
  UniqueFd kept;
  {
    auto child = Child::start({.argv = {"/bin/sleep", "1000"}, .log_path = directory.file("log")});
    REQUIRE(child);
    CHECK_FALSE(child->status());
    kept = *child->pidfd().duplicate();
  }

  CHECK(has_exited(kept));
}

TEST_CASE("child: its own children end with it; in our group they end with us") {
  const auto directory = TemporaryDirectory::create("test").value();
  UniqueFd sleeper;
  {
    auto child = Child::start({.argv = {"/bin/sh", "-c", "sleep 1000 & echo $!; wait"},
                               .log_path = directory.file("log"),
                               .read_output = true});
    REQUIRE(child);
    const pid_t pid = std::stoi(first_line(*child));
    sleeper = open_pidfd({pid, start_ticks_of(pid).value()}).value();
    CHECK(::getpgid(pid) == child->pid());
  }
  pollfd gone{sleeper.get(), POLLIN, 0};
  CHECK(::poll(&gone, 1, kLong_ms) == 1);

  auto ours = Child::start({.argv = {"/bin/sh", "-c", "cut -d' ' -f5 /proc/self/stat"},
                            .log_path = directory.file("log"),
                            .read_output = true,
                            .share_process_group = true});
  REQUIRE(ours);
  CHECK(std::stoi(first_line(*ours)) == ::getpgrp());
}

TEST_CASE("child: its stdout can be read, its stderr goes to the log") {
  const auto directory = TemporaryDirectory::create("test").value();
  auto child = Child::start({.argv = {"/bin/sh", "-c", "echo out; echo err >&2"},
                             .log_path = directory.file("log"),
                             .read_output = true});
  REQUIRE(child);
  CHECK(wait_for(*child) == 0);

  char bytes[16];
  CHECK(::read(child->output().get(), bytes, sizeof(bytes)) == 4);
  std::string text;
  std::getline(std::ifstream(directory.file("log")) >> std::ws, text);
  CHECK(text == "err");
}

TEST_CASE("child: a missing program is an error that names it") {
  const auto directory = TemporaryDirectory::create("test").value();
  const auto child =
      Child::start({.argv = {"/nowhere/leasehold-broker"}, .log_path = directory.file("log")});

  REQUIRE_FALSE(child);
  CHECK(child.error().code == Errc::FileNotFound);
  CHECK(child.error().detail.find("/nowhere/leasehold-broker") != std::string::npos);
}

TEST_CASE("child: it runs as another user, who cannot reach the program by its path") {
  if (::geteuid() != 0) {
    WARN("skipped: needs root to run a process as another user");
    return;
  }
  const auto directory = TemporaryDirectory::create("test").value();
  std::filesystem::copy_file("/bin/sh", directory.file("sh"));
  auto child = Child::start({.argv = {directory.file("sh"), "-c", "id -u; id -G; sleep 1000"},
                             .log_path = directory.file("log"),
                             .read_output = true,
                             .uid = 65534});
  REQUIRE(child);
  CHECK(first_line(*child) == "65534\n");
  CHECK(first_line(*child) == "65534\n");
}

TEST_CASE("child: it runs with another nice value, and this process keeps its own") {
  const int own = ::getpriority(PRIO_PROCESS, 0);
  const int other = std::min(own + 3, 19);
  const auto directory = TemporaryDirectory::create("test").value();
  auto child = Child::start({.argv = {"/usr/bin/nice"},
                             .log_path = directory.file("log"),
                             .read_output = true,
                             .nice = other});
  REQUIRE(child);
  CHECK(first_line(*child) == std::to_string(other) + "\n");
  CHECK(::getpriority(PRIO_PROCESS, 0) == own);
}
