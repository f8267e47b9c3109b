/// Starts a thread that blocks all signals, so that the program's own threads handle them.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace leasehold::api {

/// Blocks every signal in the creating thread, and in threads that this thread starts meanwhile.
/// The destructor restores the mask.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

/// Leaves the caller's signal mask unchanged. Throws std::system_error when the system has no more
/// threads, and exceptions of moving the body.
template <class Body>
std::thread start_without_signals(Body body) {
  const BlockedSignals blocked;
  return std::thread(std::move(body));
}

}  // namespace leasehold::api
