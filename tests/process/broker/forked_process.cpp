#include "tests/process/broker/forked_process.hpp"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <iostream>
#include <utility>

#include "common/expects.hpp"
#include "tests/support/child_process.hpp"

namespace leasehold {
namespace {

void change_user(uid_t uid) {
  if (uid != ::geteuid()) {
    const bool changed = ::setgroups(0, nullptr) == 0 && ::setgid(uid) == 0 && ::setuid(uid) == 0;
    if (!changed) ::_exit(1);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // a failing test leaves nothing behind
}

/// Runs the action as the child. An exception must not unwind into the child's copy of the test.
template <class Action>
auto run_as(uid_t uid, const Action& action) {
  change_user(uid);
  try {
    return action();
  } catch (const std::exception& error) {
    std::cerr << "the child failed: " << error.what() << std::endl;
    ::_exit(3);
  }
}

[[noreturn]] void run_child(uid_t uid, int out, const std::function<std::string()>& action) {
  const std::string output = run_as(uid, action);
  for (std::size_t sent = 0; sent < output.size();) {
    const ssize_t more = ::write(out, output.data() + sent, output.size() - sent);
    if (more <= 0) ::_exit(2);
    sent += static_cast<std::size_t>(more);
  }
  ::_exit(0);
}

}  // namespace

bool can_change_user() {
  if (::geteuid() == 0) return true;
  WARN("skipped: needs root to run a process as another user");
  return false;
}

std::string as_user(uid_t uid, const std::function<std::string()>& action) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd in(ends[0]);
  UniqueFd out(ends[1]);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) run_child(uid, out.get(), action);
  out.reset();
  std::string output = testing::read_all(in);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  INFO("the child ended with status " << status);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  return output;
}

ForkedProcess::ForkedProcess(uid_t uid, const std::function<void()>& action) {
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const UniqueFd done(ends[0]);
  UniqueFd done_writer(ends[1]);
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ == 0) {
    run_as(uid, action);
    if (::write(done_writer.get(), "d", 1) != 1) ::_exit(1);
    for (;;) ::pause();
  }
  done_writer.reset();
  char byte = 0;
  REQUIRE(::read(done.get(), &byte, 1) == 1);
}

int ForkedProcess::wait() {
  expects(pid_ != 0, "a child is waited for once");
  int status = 0;
  const pid_t child = std::exchange(pid_, 0);
  ensures(::waitpid(child, &status, 0) == child, "the child can be waited for");
  return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

void ForkedProcess::kill() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  wait();
}

ForkedProcess::~ForkedProcess() {
  kill();
}

}  // namespace leasehold
