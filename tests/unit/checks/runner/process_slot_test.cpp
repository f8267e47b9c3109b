#include "tests/checks/runner/process_slot.hpp"

#include <poll.h>

#include <catch2/catch.hpp>

using namespace leasehold;
using namespace leasehold::runner;

namespace {

/// A pidfd is readable once its process has ended.
void wait_for_end(ProcessSlot& slot) {
  pollfd end{.fd = slot.pidfd().get(), .events = POLLIN, .revents = 0};
  constexpr int kTimeout_ms = 60'000;
  REQUIRE(::poll(&end, 1, kTimeout_ms) == 1);
}

Child start_shell(const char* command) {
  return Child::start({.argv = {"/bin/sh", "-c", command}, .log_path = "/dev/null"}).value();
}

ProcessSlot slot_of(const char* command) {
  ProcessSlot slot;
  slot.adopt(start_shell(command));
  return slot;
}

}  // namespace

TEST_CASE("soak slot: has a process until its exit status is taken") {
  ProcessSlot slot = slot_of("exit 7");
  wait_for_end(slot);
  CHECK_FALSE(slot.is_running());
  CHECK(slot.has_process());
  CHECK(slot.take_exit_status() == 7);
  CHECK_FALSE(slot.has_process());
  CHECK_FALSE(slot.take_exit_status());
}

TEST_CASE("soak slot: was_killed holds until the next process starts") {
  ProcessSlot slot = slot_of("exec sleep 600");
  slot.kill();
  wait_for_end(slot);
  CHECK(slot.take_exit_status() == 128 + 9);
  CHECK(slot.was_killed());
  slot.adopt(start_shell("exit 0"));
  CHECK_FALSE(slot.was_killed());
}

TEST_CASE("soak slot: a later kill counts the polls of a process that runs") {
  ProcessSlot slot = slot_of("exec sleep 600");
  slot.kill_after(2);
  slot.count_poll();
  CHECK_FALSE(slot.was_killed());
  slot.count_poll();
  CHECK(slot.was_killed());
  slot.kill_after(1);  // the next one
  slot.count_poll();
  wait_for_end(slot);
  CHECK(slot.take_exit_status() == 128 + 9);
  slot.adopt(start_shell("exec sleep 600"));
  CHECK_FALSE(slot.was_killed());
  slot.count_poll();
  CHECK(slot.was_killed());
  wait_for_end(slot);
  CHECK(slot.take_exit_status() == 128 + 9);
  slot.adopt(start_shell("exec sleep 600"));
  slot.kill_after(1);
  slot.spare();
  slot.count_poll();
  CHECK_FALSE(slot.was_killed());
}
