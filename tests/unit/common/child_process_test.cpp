#include "common/child_process.hpp"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "common/process.hpp"

using namespace leasehold;

namespace {

/// Longer than any correct run takes.
constexpr int kLong_ms = 20'000;

struct Log {
  std::string path = (std::filesystem::temp_directory_path() /
                      ("leasehold-child-" + std::to_string(::getpid()) + ".log"));
  ~Log() { std::filesystem::remove(path); }
};

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
  const Log log;
  auto fails = Child::start({.argv = {"/bin/sh", "-c", "exit 7"}, .log_path = log.path});
  auto dies = Child::start({.argv = {"/bin/sh", "-c", "kill -9 $$"}, .log_path = log.path});

  REQUIRE(fails);
  REQUIRE(dies);
  CHECK(wait_for(*fails) == 7);
  CHECK(wait_for(*dies) == 128 + SIGKILL);
}

TEST_CASE("child: it ends with the object that owns it") {
  const Log log;
  UniqueFd kept;
  {
    auto child = Child::start({.argv = {"/bin/sleep", "1000"}, .log_path = log.path});
    REQUIRE(child);
    CHECK_FALSE(child->status());
    kept = *child->pidfd().duplicate();
  }

  CHECK(has_exited(kept));
}

TEST_CASE("child: its own children end with it; in our group they end with us") {
  const Log log;
  UniqueFd sleeper;
  {
    auto child = Child::start({.argv = {"/bin/sh", "-c", "sleep 1000 & echo $!; wait"},
                               .log_path = log.path,
                               .read_output = true});
    REQUIRE(child);
    const pid_t pid = std::stoi(first_line(*child));
    sleeper = open_pidfd({pid, start_ticks_of(pid).value()}).value();
    CHECK(::getpgid(pid) == child->pid());
  }
  pollfd gone{sleeper.get(), POLLIN, 0};
  CHECK(::poll(&gone, 1, kLong_ms) == 1);

  auto ours = Child::start({.argv = {"/bin/sh", "-c", "cut -d' ' -f5 /proc/self/stat"},
                            .log_path = log.path,
                            .read_output = true,
                            .share_process_group = true});
  REQUIRE(ours);
  CHECK(std::stoi(first_line(*ours)) == ::getpgrp());
}

TEST_CASE("child: its stdout can be read, its stderr goes to the log") {
  const Log log;
  auto child = Child::start({.argv = {"/bin/sh", "-c", "echo out; echo err >&2"},
                             .log_path = log.path,
                             .read_output = true});
  REQUIRE(child);
  CHECK(wait_for(*child) == 0);

  char bytes[16];
  CHECK(::read(child->output().get(), bytes, sizeof(bytes)) == 4);
  std::string text;
  std::getline(std::ifstream(log.path) >> std::ws, text);
  CHECK(text == "err");
}

TEST_CASE("child: a missing program is an error that names it") {
  const Log log;
  const auto child = Child::start({.argv = {"/nowhere/leasehold-broker"}, .log_path = log.path});

  REQUIRE_FALSE(child);
  CHECK(child.error().code == Errc::FileNotFound);
  CHECK(child.error().detail.find("/nowhere/leasehold-broker") != std::string::npos);
}
