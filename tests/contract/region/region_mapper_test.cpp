// The contract of every RegionMapper.
#include <fcntl.h>

#include <array>
#include <catch2/catch.hpp>
#include <optional>

#include "tests/contract/region/region_kind.hpp"

using namespace leasehold;
using testing::address_of;
using testing::RegionKind;
using testing::required;

namespace {

constexpr std::size_t kSize_bytes = std::size_t{2} << 20;
constexpr std::size_t kOdd_bytes = kSize_bytes + 12'345;
constexpr std::array kWord{std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}};

std::array<std::byte, 4> word_at(RegionKind& kind, const LeasedMapping& mapping,
                                 std::ptrdiff_t offset) {
  std::array<std::byte, 4> word{};
  kind.read(address_of(mapping.base() + offset), word);
  return word;
}

void put_word(RegionKind& kind, const LeasedMapping& mapping, std::ptrdiff_t offset) {
  kind.write(address_of(mapping.writable_base() + offset), kWord);
}

LeasedMapping map(RegionKind& kind, const UniqueFd& fd, std::size_t size_bytes, MapAccess access) {
  return required(kind.mapper().map(required(fd.duplicate()), size_bytes, access));
}

}  // namespace

TEST_CASE("region: a mapping has the requested size, to the last byte") {
  const auto kind = testing::make_region_kind();
  const std::size_t size_bytes = GENERATE(kSize_bytes, kOdd_bytes);
  const UniqueFd fd = kind->make(size_bytes);
  const LeasedMapping mapping = map(*kind, fd, size_bytes, MapAccess::ReadWrite);
  CHECK(mapping.size_bytes() == size_bytes);
  const auto last = static_cast<std::ptrdiff_t>(size_bytes - kWord.size());
  put_word(*kind, mapping, last);
  CHECK(word_at(*kind, mapping, last) == kWord);
}

TEST_CASE("region: two mappings of one memory show the same bytes") {
  const auto kind = testing::make_region_kind();
  const UniqueFd fd = kind->make(kSize_bytes);
  const LeasedMapping writer = map(*kind, fd, kSize_bytes, MapAccess::ReadWrite);
  const LeasedMapping reader = map(*kind, fd, kSize_bytes, MapAccess::ReadOnly);
  put_word(*kind, writer, 4096);
  CHECK(word_at(*kind, reader, 4096) == kWord);
}

TEST_CASE("region: a read-only mapping gives out no writable handle") {
  const auto kind = testing::make_region_kind();
  const UniqueFd fd = kind->make(kSize_bytes);
  const LeasedMapping reader = map(*kind, fd, kSize_bytes, MapAccess::ReadOnly);
  CHECK(reader.base());
  CHECK_FALSE(reader.writable_base());
  CHECK(map(*kind, fd, kSize_bytes, MapAccess::ReadWrite).writable_base());
}

TEST_CASE("region: a mapping outlives the descriptor and other mappings") {
  const auto kind = testing::make_region_kind();
  std::optional<UniqueFd> fd = kind->make(kSize_bytes);
  std::optional<LeasedMapping> other = map(*kind, *fd, kSize_bytes, MapAccess::ReadWrite);
  const LeasedMapping mapping = map(*kind, *fd, kSize_bytes, MapAccess::ReadWrite);
  put_word(*kind, *other, 0);
  other.reset();
  fd.reset();
  CHECK(word_at(*kind, mapping, 0) == kWord);
}

TEST_CASE("region: memory mapped again keeps its content") {
  const auto kind = testing::make_region_kind();
  const UniqueFd fd = kind->make(kSize_bytes);
  for (int round = 0; round < 3; ++round) {
    const LeasedMapping mapping = map(*kind, fd, kSize_bytes, MapAccess::ReadWrite);
    if (round == 0) put_word(*kind, mapping, 8);
    CHECK(word_at(*kind, mapping, 8) == kWord);
  }
}

TEST_CASE("region: memory smaller than announced is not mapped") {
  const auto kind = testing::make_region_kind();
  const auto mapped =
      kind->mapper().map(kind->make(kSize_bytes), 2 * kSize_bytes, MapAccess::ReadWrite);
  REQUIRE_FALSE(mapped);
  CHECK(mapped.error().code == Errc::UntrustedSegment);
}

TEST_CASE("region: a descriptor of anything else is not mapped") {
  const auto kind = testing::make_region_kind();
  UniqueFd stranger(::open("/dev/zero", O_RDWR | O_CLOEXEC));
  const auto mapped = kind->mapper().map(std::move(stranger), kSize_bytes, MapAccess::ReadWrite);
  REQUIRE_FALSE(mapped);
  CHECK(mapped.error().code == Errc::UntrustedSegment);
}
