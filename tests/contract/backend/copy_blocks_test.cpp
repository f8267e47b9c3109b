/// How a backend copies blocks of a sequence: in units of bounded size, behind its lease.
#include <catch2/catch.hpp>
#include <mutex>
#include <numeric>

#include "tests/contract/backend/rig.hpp"

namespace leasehold::testing {
namespace {

constexpr std::uint64_t kBlockBytes = 600'000;  // several units, the last one smaller
constexpr std::uint32_t kCopied = 1;            // the sequence

/// Units of at most 64 KiB on a CPU and of 256 KiB on a card.
constexpr int units_per_block(std::uint32_t backend) {
  return backend == kCuda ? 3 : 10;
}

/// Backends of one thread, so that no other thread copies on meanwhile.
const std::vector<std::uint32_t> kOneThread = [] {
  std::vector<std::uint32_t> some = kWithCuda;
  std::erase_if(some, [](std::uint32_t backend) { return gates_of(backend) != 1; });
  return some;
}();

/// Two blocks of a sequence and room for their copies, in the opposite order.
struct BlocksToCopy {
  BlocksToCopy() {
    std::vector<std::uint32_t> values(2 * kBlockBytes / sizeof(std::uint32_t));
    std::iota(values.begin(), values.end(), 1u);
    from.fill<std::uint32_t>(values);
    for (std::uint64_t block : {0u, 1u})
      copies.push_back(
          {.to = to.at((1 - block) * kBlockBytes), .from = from.at(block * kBlockBytes)});
  }
  LaunchStatus copy(Backend& backend, const GateSet& gates) {
    return backend.copy_blocks(
        {.gates = &gates, .rows = {}, .layer = 0},
        {.sequence = kCopied, .copies = copies, .block_size_bytes = kBlockBytes});
  }
  bool is_copied(std::uint64_t block) const {
    const std::byte* copied = to.bytes() + (1 - block) * kBlockBytes;
    return std::equal(copied, copied + kBlockBytes, from.bytes() + block * kBlockBytes);
  }
  bool is_untouched() const {
    return std::all_of(to.bytes(), to.bytes() + 2 * kBlockBytes,
                       [](std::byte b) { return b == std::byte{0}; });
  }

  LeasedMemory from{2 * kBlockBytes};
  LeasedMemory to{2 * kBlockBytes};
  std::vector<LeasedCopy> copies;
};

/// Counts the units that announce tenant memory, and revokes a lease at one of them.
class CopyProbe final : public GateProbe {
 public:
  void unit_polled(std::uint32_t thread, LaunchSite site, std::uint16_t, SequenceMask) override {
    const std::scoped_lock lock(mutex_);
    if (site != LaunchSite::BlockCopy) return;
    if (touches_of(table->announcement_of(thread)) == Touches::TenantMemory) ++announced;
    if (units++ == revoke_at) table->revoke(FakeTable::slot_of(kCopied));
  }
  FakeTable* table = nullptr;
  int revoke_at = -1;
  int units = 0;
  int announced = 0;

 private:
  std::mutex mutex_;
};

}  // namespace

TEST_CASE("backend: blocks are copied whole, in units of bounded size that announce themselves") {
  const std::uint32_t backend = GENERATE(from_range(kWithCuda));
  CopyProbe probe;
  Rig rig(backend, &probe);
  probe.table = &rig.table;
  BlocksToCopy blocks;
  const auto gates = rig.table.step(3);
  CHECK(blocks.copy(*rig.backend, *gates).live == gates->all());
  CHECK(blocks.is_copied(0));
  CHECK(blocks.is_copied(1));
  CHECK(probe.units == 2 * units_per_block(backend));
  CHECK(probe.announced == probe.units);
}

TEST_CASE("backend: blocks of a sequence that is not live stay untouched") {
  Rig rig(GENERATE(from_range(kWithCuda)));
  BlocksToCopy blocks;
  const auto gates = rig.table.step(3);
  rig.table.revoke(FakeTable::slot_of(kCopied));
  CHECK((blocks.copy(*rig.backend, *gates).live >> kCopied & 1) == 0);
  CHECK(blocks.is_untouched());
}

TEST_CASE("backend: a lease revoked during a copy leaves it incomplete, another lease does not") {
  CopyProbe probe;
  Rig rig(GENERATE(from_range(kOneThread)), &probe);
  probe.table = &rig.table;
  probe.revoke_at = 1;
  BlocksToCopy blocks;
  const auto gates = rig.table.step(3);
  CHECK((blocks.copy(*rig.backend, *gates).live >> kCopied & 1) == 0);
  CHECK_FALSE(blocks.is_copied(0));
  CHECK_FALSE(blocks.is_copied(1));

  const auto others = rig.table.step(3);
  rig.table.revoke(FakeTable::slot_of(0));
  CHECK((blocks.copy(*rig.backend, *others).live >> kCopied & 1) != 0);
  CHECK(blocks.is_copied(0));
  CHECK(blocks.is_copied(1));
}

}  // namespace leasehold::testing
