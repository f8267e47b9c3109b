#include "worker/engine/leases/leased_records.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "worker/engine/gate_numbers.hpp"
#include "worker/kv/record_layout.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold {
namespace {

constexpr std::size_t kHeadersPerUnit = 64;
constexpr std::uint64_t kBytesPerUnit = 64 << 10;

std::unexpected<Error> not_live(LeaseId lease) {
  return fail(Errc::LeaseRevoked,
              fmt::format("lease {} ended while its memory was adopted; acquire "
                          "a new lease",
                          to_string(lease)));
}

}  // namespace

template <class Unit>
bool LeasedRecords::run_for(LeaseId lease, Unit&& unit) {
  const Result<LeaseDependency> word = deps_.table->dependency(lease);
  if (!word) return false;
  const StopFlags no_stops;
  UnreportedRefusals refusals(*deps_.observer);
  GateSet gates(next_gate_number(), no_stops, refusals);
  gates.add_sequence(std::span(&*word, 1));
  return deps_.gate->run(gates, {LaunchSite::Commit, 0, Touches::TenantMemory}, unit) != 0;
}

// ---------------------------------------------------------------------------------------- clear

void LeasedRecords::clear_released() {
  std::map<LeaseId, std::vector<BlockId>> released;
  for (const auto& [lease, block] : deps_.scheduler->blocks().take_released_records())
    released[lease].push_back(block);
  for (const auto& [lease, blocks] : released) clear(lease, blocks);
}

bool LeasedRecords::clear(LeaseId lease, std::span<const BlockId> first_blocks) {
  constexpr std::uint64_t kNoMagic = 0;
  std::vector<LeasedPiece> pieces;
  for (const BlockId block : first_blocks) {
    const auto at = deps_.memory->address(lease, block);
    if (at) pieces.push_back({.to = *at, .bytes = std::as_bytes(std::span(&kNoMagic, 1))});
  }
  if (pieces.empty()) return true;
  return run_for(lease, [&](const LaunchPermit& permit) { deps_.backend->write(permit, pieces); });
}

// ---------------------------------------------------------------------------------------- adopt

LeasedRecords::Adopted LeasedRecords::adopt(LeaseId lease) {
  Adopted adopted;
  if (deps_.scheduler->blocks().pool_of(lease) == nullptr) return adopted;
  const SchedulerLimits& limits = deps_.scheduler->fit().limits();
  AdoptedRecords records({.tokens_per_block = limits.tokens_per_block,
                          .state_blocks = limits.state_blocks,
                          .window = limits.window,
                          .n_vocab = n_vocab_});
  const std::vector<BlockId> found = find(lease);
  for (const BlockId first : found) {
    if (const auto taken = take(lease, first, records); !taken)
      adopted.dropped.push_back(taken.error());
  }
  // The records are cleared before any of these blocks is reused. If that fails, nothing is
  // adopted.
  if (!clear(lease, found)) return {};
  adopted.records = records.size();
  adopted.blocks = deps_.scheduler->blocks().adopt(lease, records);
  return adopted;
}

/// The blocks of the lease that begin with a record's magic number.
std::vector<BlockId> LeasedRecords::find(LeaseId lease) {
  const std::vector<BlockId> blocks = deps_.memory->blocks(lease);
  std::vector<BlockId> found;
  for (std::size_t from = 0; from < blocks.size(); from += kHeadersPerUnit) {
    const auto part =
        std::span(blocks).subspan(from, std::min(kHeadersPerUnit, blocks.size() - from));
    const bool is_live = run_for(lease, [&](const LaunchPermit& permit) {
      for (const BlockId block : part) {
        const auto at = deps_.memory->address(lease, block);
        std::uint64_t magic = 0;
        if (at) std::memcpy(&magic, permit.open(*at), sizeof(magic));
        if (magic == kRecordMagic) found.push_back(block);
      }
    });
    if (!is_live) return {};
  }
  return found;
}

/// The first `bytes_per_block` bytes of each block, concatenated.
Result<std::vector<std::byte>> LeasedRecords::read(LeaseId lease, std::span<const BlockId> blocks,
                                                   std::uint64_t bytes_per_block) {
  std::vector<std::byte> bytes(blocks.size() * bytes_per_block);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Leased<std::byte> from = TRY(deps_.memory->address(lease, blocks[i]));
    for (std::uint64_t at = 0; at < bytes_per_block; at += kBytesPerUnit) {
      const std::uint64_t n = std::min(kBytesPerUnit, bytes_per_block - at);
      const bool is_live = run_for(lease, [&](const LaunchPermit& permit) {
        std::memcpy(bytes.data() + i * bytes_per_block + at, permit.open(from) + at, n);
      });
      if (!is_live) return not_live(lease);
    }
  }
  return bytes;
}

Result<void> LeasedRecords::take(LeaseId lease, BlockId first, AdoptedRecords& into) {
  const SchedulerLimits& limits = deps_.scheduler->fit().limits();
  const std::uint64_t block_bytes = deps_.memory->block_size_bytes();
  const std::vector<std::byte> head =
      TRY(read(lease, std::span(&first, 1), std::min(kRecordHeadBytes, block_bytes)));
  const std::vector<BlockId> blocks =
      TRY(named_record_blocks(head, first, limits.record_shape(), block_bytes));
  if (blocks.empty()) return fail(Errc::FileCorrupt, "a sequence record changed while it was read");
  const std::uint64_t most = record_size_bytes(limits.record_shape()) + kMaxSamplingListsBytes +
                             record_state_bytes(limits.state_blocks);
  const std::vector<std::byte> bytes = TRY(read(lease, blocks, std::min(block_bytes, most)));
  SequenceRecord record = TRY(read_record(bytes, limits.record_shape()));
  return into.add(std::move(record), blocks, *deps_.scheduler->blocks().pool_of(lease));
}

}  // namespace leasehold
