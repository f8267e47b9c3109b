/// The sequence records that a worker finds in adopted memory, and what they add to the lease: the
/// blocks of their texts, as cached blocks. A request that returns with such a text starts with
/// them, as with any other cached prefix; one of them goes on in the last block of each.
///
/// Records are untrusted input. Nothing is taken from one that names a token outside the
/// vocabulary, a block outside the lease, a block twice, or a block that another record names for
/// another text.
///
/// Pure bookkeeping. Threads: one.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <vector>

#include "worker/kv/prefix_index.hpp"
#include "worker/kv/sequence_record.hpp"

namespace leasehold {

class AdoptedRecords {
 public:
  AdoptedRecords(std::uint32_t tokens_per_block, std::uint32_t n_vocab)
      : tokens_per_block_(tokens_per_block), n_vocab_(n_vocab) {}

  /// Collects a record that lies in `own_blocks`. Errors: FileCorrupt, naming what is wrong.
  Result<void> add(SequenceRecord record, std::span<const BlockId> own_blocks,
                   const BlockPool& pool);

  /// Takes the committed blocks out of the pool and adds them to the index, unused. Returns how
  /// many.
  /// Precondition: nothing is held from the pool.
  std::uint32_t cache(const TenantId& owner, BlockPool& pool, PrefixIndex& index) const;

  std::uint32_t size() const { return static_cast<std::uint32_t>(records_.size()); }

 private:
  std::uint32_t full_blocks(const SequenceRecord& record) const {
    return record.committed / tokens_per_block_;
  }
  Result<void> check_tokens(const SequenceRecord& record) const;
  Result<void> check_blocks(const SequenceRecord& record, std::span<const BlockId> own_blocks,
                            const BlockPool& pool) const;
  bool is_same_text(const SequenceRecord& record, std::uint32_t block) const;
  OwnedText text_of(const SequenceRecord& record, std::uint32_t block, const TenantId& owner) const;

  std::uint32_t tokens_per_block_;
  std::uint32_t n_vocab_;
  std::vector<SequenceRecord> records_;
  std::set<BlockId> own_blocks_;  // of all records
  struct Use {
    std::size_t record = 0;
    std::uint32_t block = 0;  // by position
  };
  std::map<BlockId, Use> uses_;  // of all records, each block once
};

}  // namespace leasehold
