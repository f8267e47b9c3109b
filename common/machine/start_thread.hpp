/// Starts threads. The system may refuse one, which std::thread reports by an exception.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "common/result.hpp"

namespace leasehold {

/// Returns SystemError for a thread that the system refused. The detail names `what`, the limits
/// that a user can raise and, unless it is empty, `other_remedy`.
Error thread_refused(std::string_view what, const std::system_error& refused,
                     std::string_view other_remedy = {});

/// `Thread` is std::thread or std::jthread; `what` names it in the error.
/// Errors: SystemError when the system has no more threads.
template <class Thread = std::thread, class Body>
Result<Thread> start_thread(std::string_view what, Body&& body,
                            std::string_view other_remedy = {}) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& refused) {
    return std::unexpected(thread_refused(what, refused, other_remedy));
  }
}

}  // namespace leasehold
