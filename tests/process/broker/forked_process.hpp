/// Runs part of a test in a child process, also as another user.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace leasehold {

/// An unprivileged uid that owns no files of the test.
inline constexpr uid_t kNobody = 65534;

/// True when this process may change its user; otherwise warns that the test is skipped.
bool can_change_user();

/// Runs `action` in a child process as that user and returns its output. Fails the test if the
/// child cannot change its user or exits with an error.
std::string as_user(uid_t uid, const std::function<std::string()>& action);

/// A child process that runs `action` as that user and then waits. The constructor returns after
/// `action`; the destructor kills the child.
class ForkedProcess {
 public:
  ForkedProcess(uid_t uid, const std::function<void()>& action);
  ~ForkedProcess();
  ForkedProcess(const ForkedProcess&) = delete;
  ForkedProcess& operator=(const ForkedProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits until the child ends; returns the signal that killed it, 0 if it exited.
  int wait();
  /// SIGKILL, and waits until the child is gone.
  void kill();

 private:
  pid_t pid_ = 0;
};

}  // namespace leasehold
