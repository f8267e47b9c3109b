#include "worker/kv/sealed_blocks.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "worker/kv/lease_seals.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kBlockBytes = 300;
constexpr std::uint64_t kLayout = 77;
constexpr LeaseId kLease{3, 9};

using Bytes = std::vector<std::byte>;

Bytes plain_block(std::uint32_t number) {
  return Bytes(kBlockBytes, static_cast<std::byte>(number + 1));
}

SealedBlock at(std::uint32_t number, std::uint32_t blocks = 3, SpillId stream = {1}) {
  return {.stream = stream, .number = number, .is_last = number + 1 == blocks};
}

struct SealedStream {
  explicit SealedStream(LeaseId lease = kLease, std::uint64_t layout = kLayout)
      : seal(LeaseSeal::create(lease, layout).value()) {}

  void write(SpillId stream = {1}) {
    for (std::uint32_t number = 0; number < 3; ++number) {
      sealed.emplace_back(kBlockBytes + LeaseSeal::kSealBytes);
      REQUIRE(seal->seal(at(number, 3, stream), plain_block(number), sealed.back()));
    }
  }
  Result<Bytes> open(const SealedBlock& where, const Bytes& bytes) const {
    Bytes block(kBlockBytes, std::byte{0xEE});
    const Result<void> opened = seal->open(where, bytes, block);
    if (opened) return block;
    CHECK(std::ranges::all_of(
        block, [](std::byte each) { return each == std::byte{0} || each == std::byte{0xEE}; }));
    return std::unexpected(opened.error());
  }
  void check_corrupt(const SealedBlock& where, const Bytes& bytes) const {
    const Result<Bytes> opened = open(where, bytes);
    REQUIRE_FALSE(opened);
    CHECK(opened.error().code == Errc::FileCorrupt);
  }

  std::shared_ptr<LeaseSeal> seal;
  std::vector<Bytes> sealed;
};

}  // namespace

TEST_CASE("sealed blocks: a stream opens in order, more than once, and shows nothing of its text") {
  SealedStream stream;
  stream.write();
  for (int i = 0; i < 2; ++i) {
    for (std::uint32_t number = 0; number < 3; ++number)
      CHECK(stream.open(at(number), stream.sealed[number]) == plain_block(number));
  }
  const Bytes text(8, std::byte{1});
  CHECK(std::ranges::search(stream.sealed[0], text).empty());
  CHECK(stream.sealed[0] != stream.sealed[1]);
}

TEST_CASE("sealed blocks: every changed byte is found") {
  SealedStream stream;
  stream.write();
  for (std::size_t i = 0; i < stream.sealed[0].size(); i += 7) {
    Bytes changed = stream.sealed[0];
    changed[i] ^= std::byte{1};
    stream.check_corrupt(at(0), changed);
  }
  CHECK(stream.open(at(0), stream.sealed[0]));
}

TEST_CASE("sealed blocks: blocks in another order, cut off or of another sequence do not open") {
  SealedStream stream;
  stream.write();
  stream.sealed.reserve(6);
  stream.write({2});
  stream.check_corrupt(at(0), stream.sealed[1]);
  stream.check_corrupt(at(0), stream.sealed[3]);  // the same text in another stream
  REQUIRE(stream.open(at(0), stream.sealed[0]));
  stream.check_corrupt(at(1), stream.sealed[2]);
  stream.check_corrupt(at(1), stream.sealed[4]);
  // A stream that claims to end earlier than it was sealed.
  REQUIRE(stream.open(at(0), stream.sealed[0]));
  stream.check_corrupt(at(1, 2), stream.sealed[1]);
  stream.check_corrupt(at(2), stream.sealed[2]);  // after a failure
}

TEST_CASE("sealed blocks: another lease or another layout does not open them") {
  SealedStream stream;
  stream.write();
  for (const auto& [lease, layout] :
       {std::pair{LeaseId{3, 10}, kLayout}, std::pair{kLease, kLayout + 1}}) {
    SealedStream other(lease, layout);
    other.write();
    other.check_corrupt(at(0), stream.sealed[0]);
  }
}

TEST_CASE("sealed blocks: a block may be sealed only behind the one before it") {
  SealedStream stream;
  Bytes sealed(kBlockBytes + LeaseSeal::kSealBytes);
  CHECK(stream.seal->seal(at(1), plain_block(1), sealed).error().code == Errc::FileCorrupt);
  stream.check_corrupt(at(0), sealed);
}

TEST_CASE("sealed blocks: once the key is forgotten nothing opens, also for those that hold it") {
  LeaseSeals seals(kLayout);
  SealedStream stream;
  stream.seal = seals.of(kLease).value();
  CHECK(seals.of(kLease).value() == stream.seal);
  stream.write();
  REQUIRE(stream.open(at(0), stream.sealed[0]));
  seals.forget(kLease);
  CHECK(seals.find(kLease) == nullptr);
  for (std::uint32_t number = 0; number < 2; ++number)
    CHECK(stream.open(at(number), stream.sealed[number]).error().code == Errc::LeaseFenced);
  Bytes sealed(kBlockBytes + LeaseSeal::kSealBytes);
  CHECK(stream.seal->seal(at(0), plain_block(0), sealed).error().code == Errc::LeaseFenced);
  seals.forget(kLease);

  stream.seal = seals.of(kLease).value();  // a new key
  Bytes again(kBlockBytes + LeaseSeal::kSealBytes);
  REQUIRE(stream.seal->seal(at(0), plain_block(0), again));
  stream.check_corrupt(at(0), stream.sealed[0]);
}

}  // namespace leasehold
