/// The broker's operators: root and the broker's own user.
#pragma once

#include <unistd.h>

namespace leasehold {

inline bool is_operator(uid_t uid) {
  return uid == 0 || uid == ::geteuid();
}

}  // namespace leasehold
