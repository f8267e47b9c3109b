/// Checks the sequence records that a worker finds in adopted memory, and adds the blocks of their
/// texts to the lease's cache. A request that is submitted again with such a text starts with these
/// blocks, as with any other cached prefix; for each record, one request may also continue in its
/// last block.
///
/// Records are untrusted input. A record is rejected as a whole if it contains a token outside the
/// vocabulary, a block outside the lease, a block twice, or a block that another record lists for
/// another text. A model with a recurrent state also needs the state of the committed positions,
/// and one with windows the blocks that the next row reads: without them the text is computed
/// again.
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
#include "worker/kv/window_blocks.hpp"

namespace leasehold {

class AdoptedRecords {
 public:
  struct Model {
    std::uint32_t tokens_per_block = 0;
    std::uint32_t state_blocks = 0;  ///< Of a copy of the recurrent state; 0: none.
    KvWindow window = {};
    std::uint32_t n_vocab = 0;
  };
  explicit AdoptedRecords(const Model& model) : model_(model) {}

  /// Adds a record that is stored in `own_blocks`. Errors: FileCorrupt, with the reason.
  Result<void> add(SequenceRecord record, std::span<const BlockId> own_blocks,
                   const BlockPool& pool);

  /// Takes the committed blocks out of the pool and adds them to the index as unused entries, each
  /// end with its state. Returns the number of blocks. Precondition: no block of the pool is held.
  std::uint32_t cache(const TenantId& owner, BlockPool& pool, PrefixIndex& index) const;

  std::uint32_t size() const { return static_cast<std::uint32_t>(records_.size()); }

 private:
  std::uint32_t full_blocks(const SequenceRecord& record) const {
    return record.committed / model_.tokens_per_block;
  }
  Result<void> check_tokens(const SequenceRecord& record) const;
  /// A block of a record that holds its text.
  struct Part {
    BlockId block;
    std::uint32_t index = 0;  // of the positions
    std::uint32_t group = 0;  // of layers
  };
  std::vector<Part> parts_of(const SequenceRecord& record) const;
  std::uint32_t first_window(const SequenceRecord& record) const {
    return WindowShape{.window = model_.window}.first(record.committed);
  }
  std::span<const BlockId> window_of(const SequenceRecord& record, std::uint32_t block) const;
  Result<void> check_state(const SequenceRecord& record) const;
  Result<void> check_windows(const SequenceRecord& record) const;
  Result<void> check_blocks(const SequenceRecord& record, std::span<const BlockId> own_blocks,
                            const BlockPool& pool) const;
  bool is_same_text(const SequenceRecord& record, const Part& part) const;
  std::uint32_t cache_window(const SequenceRecord& record, std::uint32_t block, PrefixId entry,
                             BlockPool& pool, PrefixIndex& index) const;
  std::uint32_t cache_state(const SequenceRecord& record, PrefixId end, BlockPool& pool,
                            PrefixIndex& index) const;
  OwnedText text_of(const SequenceRecord& record, std::uint32_t block, const TenantId& owner) const;

  Model model_;
  std::vector<SequenceRecord> records_;
  std::set<BlockId> unshared_;  // blocks of all records themselves and of their states
  struct Use {
    std::size_t record = 0;
    std::uint32_t index = 0;  // as in Part
    std::uint32_t group = 0;
  };
  std::map<BlockId, Use> uses_;  // first use of each block in any record
};

}  // namespace leasehold
