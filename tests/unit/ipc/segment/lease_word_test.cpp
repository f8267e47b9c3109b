#include "ipc/segment/lease_word.hpp"

#include <catch2/catch.hpp>
#include <string>

using namespace leasehold;

namespace {

constexpr std::uint64_t kLastGeneration = (std::uint64_t{1} << 48) - 1;

}  // namespace

TEST_CASE("lease word: generation, state and reason have fixed bit positions") {
  CHECK(LeaseWord::make(4, LeaseState::Live).bits == 0x0000'0000'0004'01'00);
  CHECK(LeaseWord::make(4, LeaseState::Revoked, RevokeReason::Operator).bits ==
        0x0000'0000'0004'02'02);
  CHECK(LeaseWord::make(kLastGeneration, LeaseState::Fenced, RevokeReason::MachineRestarted).bits ==
        0xFFFF'FFFF'FFFF'03'10);
}

TEST_CASE("lease word: packing and unpacking round-trip") {
  for (const std::uint64_t generation : {std::uint64_t{1}, std::uint64_t{77}, kLastGeneration}) {
    const auto word = LeaseWord::make(generation, LeaseState::Fenced, RevokeReason::WorkerHung);
    CHECK(word.generation() == generation);
    CHECK(word.state() == LeaseState::Fenced);
    CHECK(word.reason() == RevokeReason::WorkerHung);
  }
}

TEST_CASE("lease word: zero is Closed with generation 0") {
  CHECK(LeaseWord{}.state() == LeaseState::Closed);
  CHECK(LeaseWord{}.reason() == RevokeReason::None);
  CHECK(LeaseWord{}.generation() == 0);
}

TEST_CASE("lease word: words of different parts differ") {
  const auto granted = LeaseWord::make(4, LeaseState::Live);
  CHECK(granted == LeaseWord::make(4, LeaseState::Live));
  for (int bit = 0; bit < 64; ++bit)
    CHECK_FALSE(granted == LeaseWord{granted.bits ^ std::uint64_t{1} << bit});
}

TEST_CASE("lease word: names of states and reasons are fixed") {
  std::string states;
  for (int i = 0; i < kLeaseStateCount; ++i)
    states.append(name(static_cast<LeaseState>(i))).append(" ");
  CHECK(states == "Closed Live Revoked Fenced ");
  std::string reasons;
  for (int i = 0; i < kRevokeReasonCount; ++i)
    reasons.append(name(static_cast<RevokeReason>(i))).append(" ");
  CHECK(reasons ==
        "none released operator ttl_expired holder_gone unknown preempted_by_priority "
        "unknown drain_deadline worker_gone worker_hung worker_replaced worker_untrusted "
        "device_fault model_unloaded policy_changed machine_restarted weights_lost "
        "worker_asleep cell_lost ");
}

TEST_CASE("lease word: unknown bytes have a name too") {
  for (int byte = 0; byte < 256; ++byte) {
    CAPTURE(byte);
    const LeaseWord word{static_cast<std::uint64_t>(byte << 8 | byte)};
    CHECK((name(word.state()) == "Unknown") == (byte > 3));
    CHECK((name(word.reason()) == "unknown") == !is_known(word.reason()));
    CHECK((byte >= kRevokeReasonCount || byte == 5 || byte == 7) == !is_known(word.reason()));
  }
}
