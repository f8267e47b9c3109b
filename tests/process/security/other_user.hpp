/// A part of a test that runs as somebody else.
#pragma once

#include <sys/types.h>

#include <functional>
#include <string>

namespace leasehold {

/// A user that owns nothing here.
inline constexpr uid_t kNobody = 65534;

/// True when this process may become another user; says what is left out otherwise.
bool may_become_others();

/// Runs `deed` in a child as that user and returns what it wrote; fails the test when the child
/// could not change its user, or died.
std::string as_user(uid_t uid, const std::function<std::string()>& deed);

/// A child that did something as that user and then only stays. Ended with this object.
class Lodger {
 public:
  Lodger(uid_t uid, const std::function<void()>& deed);
  ~Lodger();
  Lodger(const Lodger&) = delete;
  Lodger& operator=(const Lodger&) = delete;

  pid_t pid() const { return pid_; }
  /// Waits for its end; the signal that killed it, 0 when it exited.
  int wait();

 private:
  pid_t pid_ = 0;
};

}  // namespace leasehold
