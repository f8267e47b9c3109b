/// Copies between the pools while the card still runs them: what a revocation stops, and when a
/// waiter is called.
#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <numeric>
#include <thread>

#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kPieceBytes = 256 * 1024;  // of one unit
constexpr std::uint64_t kBlockBytes = 2 * kPieceBytes;
constexpr std::uint32_t kBlocks = 5;

/// Blocks of the sequence whose lease tests revoke, in memory that the card reaches.
struct Copying {
  explicit Copying(std::uint32_t max_in_flight = 16) : rig({.max_in_flight = max_in_flight}) {
    std::vector<std::uint32_t> values(kBlocks * kBlockBytes / sizeof(std::uint32_t));
    std::iota(values.begin(), values.end(), 1u);
    from.fill<std::uint32_t>(values);
    for (std::uint64_t i = 0; i < kBlocks; ++i)
      copies.push_back({.to = to.at(i * kBlockBytes), .from = from.at(i * kBlockBytes)});
    reach.add(from.at(), kBlocks * kBlockBytes);
    reach.add(to.at(), kBlocks * kBlockBytes);
    reach.open();
  }

  LaunchStatus copy() {
    const auto gates = rig.table.step(DecodeRig::kSequences);
    return rig.backend->copy_blocks(
        {.gates = gates.get(), .rows = {}, .layer = 0},
        {.sequence = DecodeRig::kDead, .copies = copies, .block_size_bytes = kBlockBytes});
  }
  /// The number of pieces at the beginning that hold the source's bytes; the others are untouched.
  std::uint32_t copied_pieces() const {
    std::uint32_t copied = 0;
    const auto bytes_of = [](const LeasedMemory& memory, std::uint32_t piece) {
      return std::span(memory.bytes() + piece * kPieceBytes, kPieceBytes);
    };
    while (copied < 2 * kBlocks && std::ranges::equal(bytes_of(to, copied), bytes_of(from, copied)))
      ++copied;
    for (std::uint32_t piece = copied; piece < 2 * kBlocks; ++piece) {
      REQUIRE(
          std::ranges::all_of(bytes_of(to, piece), [](std::byte b) { return b == std::byte{}; }));
    }
    return copied;
  }

  LeasedMemory from{kBlocks * kBlockBytes};
  LeasedMemory to{kBlocks * kBlockBytes};
  std::vector<LeasedCopy> copies;
  DeviceRegistration reach;
  DecodeRig rig;
};

}  // namespace

TEST_CASE("cuda backend: copies queued before a revocation end before a waiter is called") {
  Copying scene;
  DecodeRig& rig = scene.rig;
  constexpr int kRevokedAt = 3;  // this unit has polled before, and is queued too
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
    if (n == kRevokedAt) rig.revoke(DecodeRig::kDead);
  });
  std::atomic<bool> told{false};
  std::uint32_t copied_when_told = 0;
  std::jthread broker([&] {
    while (rig.units.count() <= kRevokedAt + 1) std::this_thread::yield();
    rig.backend->when_settled(SettleScope::Everything, [&] {
      copied_when_told = scene.copied_pieces();
      told = true;
    });
    CHECK_FALSE(told);
    CHECK(scene.copied_pieces() == 0);
    fake_cuda_release();
  });
  const LaunchStatus status = scene.copy();
  broker.join();
  CHECK(status.live == DecodeRig::kSurvivors);
  CHECK(told);
  CHECK(copied_when_told == kRevokedAt + 1);
  CHECK(scene.copied_pieces() == kRevokedAt + 1);
  const auto refusals = rig.table.listener().refusals();
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].site == LaunchSite::BlockCopy);
}

TEST_CASE("cuda backend: a revocation while the last copies run leaves the transfer incomplete") {
  Copying scene;
  DecodeRig& rig = scene.rig;
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
  });
  std::jthread broker([&] {
    while (rig.units.count() < static_cast<int>(2 * kBlocks)) std::this_thread::yield();
    CHECK(engine_polls_again());
    rig.revoke(DecodeRig::kDead);
    CHECK(engine_polls_again());
    fake_cuda_release();
  });
  CHECK(scene.copy().live == DecodeRig::kSurvivors);
}

TEST_CASE("cuda backend: at most max_in_flight copies are queued") {
  constexpr int kBound = 3;
  Copying scene(kBound);
  DecodeRig& rig = scene.rig;
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
  });
  std::jthread card([&] {
    while (rig.units.count() < kBound) std::this_thread::yield();
    CHECK(engine_polls_again());
    CHECK(engine_polls_again());
    CHECK(rig.units.count() == kBound);
    fake_cuda_release();
  });
  CHECK(scene.copy().live == 0b111);
  card.join();
  CHECK(scene.copied_pieces() == 2 * kBlocks);
}

TEST_CASE("cuda backend: a copy that fails is a fault, and no waiter is called") {
  Copying scene;
  DecodeRig& rig = scene.rig;
  bool told = false;
  const bool fails_at_call = GENERATE(true, false);
  rig.units.start([&](int n) {
    if (n == 0) fake_cuda_hold();
    if (n != 2) return;
    rig.backend->when_settled(SettleScope::Everything, [&] { told = true; });
    if (fails_at_call) return fake_cuda_fail_next("cuMemcpyAsync", CUDA_ERROR_ILLEGAL_ADDRESS);
    fake_cuda_lose_device();
  });
  CHECK(scene.copy().none_live());
  REQUIRE(rig.backend->fault());
  CHECK(rig.backend->fault()->code == Errc::DeviceFault);
  CHECK_FALSE(told);
  CHECK(rig.units.count() == 3);
}

}  // namespace leasehold::testing
