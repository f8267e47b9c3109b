/// Starts a thread that takes no signal: those are the program's.
#pragma once

#include <signal.h>

#include <thread>
#include <utility>

namespace leasehold::api {

/// Blocks every signal for the thread that creates it, and for threads that it starts meanwhile.
/// Its end restores the mask, also when an exception passes.
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

/// The caller's signal mask is the same afterwards. Throws std::system_error when there is no
/// thread, and what moving the body throws.
template <class Body>
std::thread start_without_signals(Body body) {
  const BlockedSignals blocked;
  return std::thread(std::move(body));
}

}  // namespace leasehold::api
