/// A part of a test that runs as somebody else.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace leasehold {

/// A user that owns nothing here.
inline constexpr uid_t kNobody = 65534;

/// True when this process may change_user another user; says what is left out otherwise.
bool can_change_user();

/// Runs `action` in a child as that user and returns what it wrote; fails the test when the child
/// could not change its user, or died.
std::string as_user(uid_t uid, const std::function<std::string()>& action);

/// A child that did something as that user and then only stays. Ended with this object.
class ForeignUserProcess {
 public:
  ForeignUserProcess(uid_t uid, const std::function<void()>& action);
  ~ForeignUserProcess();
  ForeignUserProcess(const ForeignUserProcess&) = delete;
  ForeignUserProcess& operator=(const ForeignUserProcess&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits for its end; the signal that killed it, 0 when it exited.
  int wait();

 private:
  pid_t pid_ = 0;
};

}  // namespace leasehold
