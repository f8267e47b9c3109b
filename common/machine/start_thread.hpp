/// Starts threads. The system may refuse one, which std::thread reports by an exception.
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

#include "common/result.hpp"

namespace leasehold {

/// The error for a thread that was refused: SystemError that names `what`, the limits that a user
/// can raise, and `or_else`, which is another remedy and may be empty.
Error thread_refused(std::string_view what, const std::system_error& refused,
                     std::string_view or_else = {});

/// `Thread` is std::thread or std::jthread; `what` names it in the error.
/// Errors: SystemError when the system has no more threads.
template <class Thread = std::thread, class Body>
Result<Thread> start_thread(std::string_view what, Body&& body, std::string_view or_else = {}) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& refused) {
    return std::unexpected(thread_refused(what, refused, or_else));
  }
}

}  // namespace leasehold
