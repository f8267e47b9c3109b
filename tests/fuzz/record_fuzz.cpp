// Sequence records in memory of another worker. Input: one byte, then the record. With the byte's
// lowest bit, the test first makes the checksums valid, as a malicious worker could.
#include <algorithm>
#include <vector>

#include "tests/fuzz/input.hpp"
#include "worker/kv/record_layout.hpp"
#include "worker/kv/sequence_record.hpp"

using namespace leasehold;

namespace {

constexpr std::uint32_t kContext = 64;
constexpr RecordShape kShape{.max_context = kContext, .n_groups = 2};

template <class T>
T& at(std::vector<std::byte>& bytes, std::uint64_t offset) {
  return *reinterpret_cast<T*>(bytes.data() + offset);
}

void sign(std::vector<std::byte>& bytes) {
  auto& header = at<RecordHeader>(bytes, 0);
  const std::uint64_t lists =
      std::min<std::uint64_t>(header.lists_bytes + record_state_bytes(header.state_blocks),
                              bytes.size() - record_size_bytes(kShape));
  header.lists_checksum = Checksum::of(bytes.data() + record_size_bytes(kShape), lists);
  header.checksum = header_checksum(header);
  for (const std::uint64_t i : {0, 1}) {
    auto& slot = at<RecordSlot>(bytes, kSlotsOffset + i * kCacheLineBytes);
    const std::uint64_t tokens = std::min(slot.tokens, kContext);
    const std::uint32_t blocks = std::min(slot.blocks, kShape.max_blocks());
    slot.tokens_checksum = Checksum::of(&bytes[kTokensOffset], tokens * sizeof(TokenId));
    slot.blocks_checksum =
        Checksum::of(&bytes[kShape.blocks_offset()], kShape.blocks_bytes(blocks));
    slot.checksum = slot_checksum(slot);
  }
}

void check_invariants(const SequenceRecord& record) {
  fuzz::check(record.tokens.size() <= kContext && record.prompt_tokens <= record.tokens.size());
  fuzz::check(record.committed <= record.tokens.size());
  fuzz::check(record.committed <= record.blocks.size() * KvLayout::kBlockTokens);
  fuzz::check(record.windows.empty() || record.windows.size() == record.blocks.size());
  fuzz::check(!record.engine_request_id.value.empty());
  fuzz::check(check_sampling(record.sampling).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input{{data, size}};
  const bool with_checksums = (input.byte() & 1) != 0;
  const auto given = std::as_bytes(input.rest());
  std::vector<std::byte> bytes(given.begin(), given.end());
  if (with_checksums && bytes.size() >= record_size_bytes(kShape)) sign(bytes);
  if (bytes.size() >= kRecordHeadBytes) {
    const auto blocks = named_record_blocks(bytes, {}, kShape, 512);
    fuzz::check(blocks ? blocks->size() <= kNamedRecordBlocks
                       : blocks.error().code == Errc::FileCorrupt);
  }
  const Result<SequenceRecord> record = read_record(bytes, kShape);
  if (record) check_invariants(*record);
  fuzz::check(record || record.error().code == Errc::FileCorrupt);
  return 0;
}
