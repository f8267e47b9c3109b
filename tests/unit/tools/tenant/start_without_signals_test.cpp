#include "tools/client/start_without_signals.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace leasehold::api;

namespace {

bool is_blocked(int signal) {
  sigset_t mask;
  REQUIRE(::pthread_sigmask(SIG_SETMASK, nullptr, &mask) == 0);
  return ::sigismember(&mask, signal) == 1;
}

/// std::thread moves it into the new thread's storage.
struct CannotMove {
  CannotMove() = default;
  CannotMove(CannotMove&&) { throw std::runtime_error("no memory"); }
  void operator()() const {}
};

}  // namespace

TEST_CASE("start without signals: the thread takes none, and its starter as many as before") {
  const bool before = is_blocked(SIGUSR1);
  bool inside = false;
  start_without_signals([&inside] { inside = is_blocked(SIGUSR1); }).join();
  CHECK(inside);
  CHECK(is_blocked(SIGUSR1) == before);
}

TEST_CASE("start without signals: a thread that cannot start leaves the signals as they were") {
  REQUIRE_FALSE(is_blocked(SIGUSR1));
  CHECK_THROWS_AS(start_without_signals(CannotMove()), std::runtime_error);
  CHECK_FALSE(is_blocked(SIGUSR1));
}
