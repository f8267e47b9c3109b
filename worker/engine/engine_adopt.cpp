// The part of Engine that clears the records of sequences that ended, and adopts those that another
// process left in the memory of a lease.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "worker/engine/engine.hpp"
#include "worker/engine/gate_numbers.hpp"
#include "worker/kv/record_layout.hpp"

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

/// Commit units write the records, so Commit units also read and clear them.
template <class Unit>
bool Engine::run_for(LeaseId lease, Unit&& unit) {
  const Result<LeaseDependency> word = deps_.table->dependency(lease);
  if (!word) return false;
  const StopFlags no_stops;
  UnreportedRefusals refusals(*deps_.observer);
  GateSet gates(next_gate_number(), no_stops, refusals);
  gates.add_sequence(std::span(&*word, 1));
  return deps_.engine_gate->run(gates, {LaunchSite::Commit, 0, Touches::TenantMemory}, unit) != 0;
}

// ---------------------------------------------------------------------------------------- clear

/// Clears the records of sequences that ended. Records whose lease has ended, or whose extent was
/// reclaimed, are never read again and need no clearing.
void Engine::clear_released_records() {
  std::map<LeaseId, std::vector<BlockId>> released;
  for (const auto& [lease, block] : scheduler_.take_released_records())
    released[lease].push_back(block);
  for (const auto& [lease, blocks] : released) clear_records(lease, blocks);
}

bool Engine::clear_records(LeaseId lease, std::span<const BlockId> first_blocks) {
  constexpr std::uint64_t kNoMagic = 0;
  std::vector<LeasedPiece> pieces;
  for (const BlockId block : first_blocks) {
    const auto at = memory_.address(lease, block);
    if (at) pieces.push_back({.to = *at, .bytes = std::as_bytes(std::span(&kNoMagic, 1))});
  }
  if (pieces.empty()) return true;
  return run_for(lease, [&](const LaunchPermit& permit) { deps_.backend->write(permit, pieces); });
}

// ---------------------------------------------------------------------------------------- adopt

Engine::Adopted Engine::adopt(LeaseId lease) {
  Adopted adopted;
  if (scheduler_.pool_of(lease) == nullptr) return adopted;
  AdoptedRecords records(KvLayout::kBlockTokens, config_.model.n_vocab);
  const std::vector<BlockId> found = find_records(lease);
  for (const BlockId first : found) {
    if (const auto taken = take_record(lease, first, records); !taken)
      adopted.dropped.push_back(taken.error());
  }
  // The records are cleared before any of these blocks is reused. If that fails, nothing is
  // adopted.
  if (!clear_records(lease, found)) return {};
  adopted.records = records.size();
  adopted.blocks = scheduler_.adopt(lease, records);
  return adopted;
}

/// The blocks of the lease that begin with a record's magic number.
std::vector<BlockId> Engine::find_records(LeaseId lease) {
  const std::vector<BlockId> blocks = memory_.blocks(lease);
  std::vector<BlockId> found;
  for (std::size_t from = 0; from < blocks.size(); from += kHeadersPerUnit) {
    const auto part =
        std::span(blocks).subspan(from, std::min(kHeadersPerUnit, blocks.size() - from));
    const bool is_live = run_for(lease, [&](const LaunchPermit& permit) {
      for (const BlockId block : part) {
        const auto at = memory_.address(lease, block);
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
Result<std::vector<std::byte>> Engine::read_leased(LeaseId lease, std::span<const BlockId> blocks,
                                                   std::uint64_t bytes_per_block) {
  std::vector<std::byte> bytes(blocks.size() * bytes_per_block);
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Leased<std::byte> from = TRY(memory_.address(lease, blocks[i]));
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

Result<void> Engine::take_record(LeaseId lease, BlockId first, AdoptedRecords& into) {
  const std::uint32_t context = config_.model.n_context;
  const std::uint64_t block_bytes = memory_.block_size_bytes();
  const std::vector<std::byte> head =
      TRY(read_leased(lease, std::span(&first, 1), std::min(kRecordHeadBytes, block_bytes)));
  const std::vector<BlockId> blocks = TRY(named_record_blocks(head, first, context, block_bytes));
  if (blocks.empty()) return fail(Errc::FileCorrupt, "a sequence record changed while it was read");
  const std::uint64_t most = record_size_bytes(context) + kMaxSamplingListsBytes;
  const std::vector<std::byte> bytes = TRY(read_leased(lease, blocks, std::min(block_bytes, most)));
  SequenceRecord record = TRY(read_record(bytes, context));
  return into.add(std::move(record), blocks, *scheduler_.pool_of(lease));
}

}  // namespace leasehold
