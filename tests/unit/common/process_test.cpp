#include "common/machine/process.hpp"

#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <thread>

#include "tests/support/child_process.hpp"

using namespace leasehold;

namespace {

/// A child that waits until it is killed.
class WaitingChild {
 public:
  WaitingChild() : pid_(::fork()) {
    if (pid_ == 0) {
      while (true) ::pause();
    }
  }
  ~WaitingChild() { reap(); }
  pid_t pid() const { return pid_; }
  UniqueFd pidfd() const { return open_pidfd(pid_).value(); }

  void reap() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(std::exchange(pid_, -1), nullptr, 0);
  }

 private:
  pid_t pid_;
};

void wait_readable(const UniqueFd& pidfd) {
  pollfd entry{pidfd.get(), POLLIN, 0};
  ::poll(&entry, 1, -1);
}

}  // namespace

TEST_CASE("process: a pidfd shows whether its process has exited") {
  const WaitingChild child;
  const UniqueFd pidfd = child.pidfd();
  CHECK_FALSE(has_exited(pidfd));
  CHECK(signal_pidfd(pidfd, SIGKILL));
  wait_readable(pidfd);
  CHECK(has_exited(pidfd));
}

TEST_CASE("process: a stopped process has not exited") {
  const WaitingChild child;
  const UniqueFd pidfd = child.pidfd();
  CHECK(signal_pidfd(pidfd, SIGSTOP));
  ::waitpid(child.pid(), nullptr, WUNTRACED);
  CHECK_FALSE(has_exited(pidfd));
}

TEST_CASE("process: signalling an exited process succeeds") {
  WaitingChild child;
  const UniqueFd pidfd = child.pidfd();
  child.reap();
  CHECK(signal_pidfd(pidfd, SIGKILL));
}

TEST_CASE("process: a reaped process has no pidfd") {
  WaitingChild child;
  const pid_t pid = child.pid();
  child.reap();
  const auto pidfd = open_pidfd(pid);
  REQUIRE_FALSE(pidfd);
  CHECK(pidfd.error().code == Errc::ConnectionLost);
}

TEST_CASE("process: an invalid signal or pid is a system error") {
  const WaitingChild child;
  const UniqueFd pidfd = child.pidfd();
  CHECK(signal_pidfd(pidfd, 1000).error().code == Errc::SystemError);
  CHECK(open_pidfd(-1).error().code == Errc::SystemError);
}

TEST_CASE("process: set_not_dumpable keeps other processes of the user out") {
#if defined(__SANITIZE_ADDRESS__)
  WARN("not checked under AddressSanitizer: its leak checker traces its own process");
  return;
#endif
  const auto end = testing::run_in_child([] {
    set_not_dumpable();
    return ::prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
  });
  CHECK(end.exit_code == 0);
}

TEST_CASE("process: a pid with its start time identifies one process") {
  WaitingChild child;
  const ProcessIdentity itself{child.pid(), start_ticks_of(child.pid()).value()};
  CHECK(itself.start_ticks >= start_ticks_of(::getpid()).value());
  CHECK(open_pidfd(itself).has_value());

  const ProcessIdentity unseen{itself.pid, 0};
  // The pid exists, perhaps for another process.
  CHECK(open_pidfd(unseen).error().code == Errc::SystemError);

  const ProcessIdentity another{itself.pid, itself.start_ticks + 1};
  CHECK(open_pidfd(another).error().code == Errc::ConnectionLost);

  child.reap();
  CHECK(open_pidfd(itself).error().code == Errc::ConnectionLost);
  CHECK(start_ticks_of(static_cast<pid_t>(itself.pid)).error().code == Errc::ConnectionLost);
}

TEST_CASE("process: a process that has exited but is not reaped counts as exited") {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  siginfo_t info{};
  REQUIRE(::waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOWAIT) == 0);
  const ProcessIdentity itself{child, start_ticks_of(child).value()};
  CHECK(open_pidfd(itself).error().code == Errc::ConnectionLost);
  ::waitpid(child, nullptr, 0);
}

TEST_CASE("process: boot_id is not empty") {
  CHECK(boot_id().value().size() == 36);
}

TEST_CASE("process: use_batch_scheduling sets SCHED_BATCH and a higher nice value") {
  const auto own_nice = [] { return ::getpriority(PRIO_PROCESS, static_cast<id_t>(::gettid())); };
  const int before = own_nice();
  std::thread([&] {
    use_batch_scheduling();
    CHECK(::sched_getscheduler(0) == SCHED_BATCH);
    CHECK(own_nice() == std::min(before + 5, 19));
  }).join();
  CHECK(own_nice() == before);
}

TEST_CASE("process: a thread has the name that it took") {
  std::string name(16, '\0');
  std::jthread([&name] {
    set_thread_name("unmapper");
    ::pthread_getname_np(::pthread_self(), name.data(), name.size());
  }).join();
  CHECK(name.c_str() == std::string("unmapper"));
}
