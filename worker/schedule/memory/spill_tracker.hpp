/// Records which blocks are in the spill file, which are being written to it and which are being
/// read back.
///
///   begin_write ─► Writing ──every block written──► Stored ──begin_read──► Reading ─► (ended)
///
/// A spill moves in pieces of one block. A piece holds a staging buffer while the block is copied
/// and while the store works on it. Tenants share slots and buffers (common/fair_shares.hpp). A
/// spill that ends keeps its slots and buffers until the store has answered every job that uses
/// them, so a late answer never affects another sequence's data.
///
/// Pure: time is an argument, jobs are listed for the caller. Threads: one.
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "common/fair_shares.hpp"
#include "worker/kv/spill_store.hpp"
#include "worker/schedule/sequence.hpp"

namespace leasehold {

struct SpillLimits {
  std::uint32_t slots = 0;                     ///< Slots of the file; 0: nothing is spilled.
  std::uint32_t buffers = 0;                   ///< Staging buffers.
  Duration timeout = std::chrono::seconds(5);  ///< How long the disk may take to answer.
  Duration pause = std::chrono::seconds(10);   ///< No new spill for this long after a failed write.
  /// Assumed rate of sealing and disk before the first measurement. A measured slower rate moves
  /// back towards it.
  double first_bytes_per_second = 256 << 20;
};

/// The extent id of staging buffers in a BlockCopy; `index` is the buffer.
inline constexpr ExtentId kStagingExtent{~std::uint64_t{0}};

/// A block of a sequence in a staging buffer.
struct SpillPiece {
  std::uint32_t block = 0;
  std::uint32_t buffer = 0;
};

struct Spill {
  enum class Phase { Writing, Stored, Reading, Ended };
  SpillId id;
  LeaseId lease;
  TenantId tenant;
  Sequence* sequence = nullptr;  ///< Null once ended.
  Phase phase = Phase::Writing;
  std::vector<std::uint32_t> slots;  ///< Slot of each block, by its index.
  std::uint32_t next = 0;            ///< The next block to stage or to read.
  std::uint32_t done = 0;            ///< Blocks that are written or read back.
  std::uint32_t buffers_held = 0;
  std::uint32_t at_disk = 0;        ///< Writes and reads not answered yet.
  std::vector<SpillPiece> arrived;  ///< Pieces that are read and not copied yet.
  TimePoint progressed;  ///< While `at_disk` > 0: the time of the last answer, or of the first job
                         ///< before any answer.

  std::uint32_t blocks() const { return static_cast<std::uint32_t>(slots.size()); }
};

class SpillTracker {
 public:
  void lend(const SpillLimits& limits);

  /// Takes a slot for each swapped block. Returns false, and changes nothing, when the tenant's
  /// share or the pause after a failure forbids it. Precondition: the sequence is Swapped and has
  /// no spill.
  bool begin_write(Sequence& sequence, TimePoint now);
  bool may_write(TimePoint now) const { return limits_.slots > 0 && now >= paused_until_; }
  void pause(TimePoint now) { paused_until_ = now + limits_.pause; }
  bool is_writing(LeaseId lease) const;
  void begin_read(Spill& spill);

  /// The spill of a sequence, or null.
  Spill* find(const Sequence& sequence);
  bool has(const Sequence& sequence) const {
    return std::ranges::any_of(
        spills_, [&](const auto& entry) { return entry.second.sequence == &sequence; });
  }
  /// The spills that are Writing or Reading.
  std::vector<Spill*> moving();
  /// The moving spills that wait for a disk that has not answered for the timeout: for their own
  /// jobs, or for buffers held by the jobs of other spills. A spill that only waits for copies in a
  /// step is not late.
  std::vector<Spill*> late(TimePoint now);

  /// The next blocks to copy to staging, as many as buffers allow.
  std::vector<SpillPiece> take_pieces(Spill& spill);
  /// The pieces were copied to staging: adds a Write job for each.
  void staged(Spill& spill, const std::vector<SpillPiece>& pieces, TimePoint now);
  /// Adds Read jobs for the next blocks, as many as buffers allow.
  void read_ahead(Spill& spill, TimePoint now);
  /// The pieces are back in KV memory, or not needed there. Returns true once this holds for every
  /// block.
  bool returned(Spill& spill, const std::vector<SpillPiece>& pieces);
  /// Adds a Clear job for the buffer of an abandoned copy. The spill may have ended.
  void clear(SpillId id, const SpillPiece& piece);

  /// Processes an answer. Returns its spill, or null when that spill has ended.
  Spill* answered(const SpillAnswer& answer, TimePoint now);
  /// Ends a spill. Its entry remains until no job uses its slots.
  void end(Spill& spill);

  std::vector<SpillJob> take_jobs() { return std::exchange(jobs_, {}); }
  std::size_t slots_taken() const { return slot_shares_.taken(); }
  std::size_t buffers_taken() const { return buffer_shares_.taken(); }
  std::size_t open_spills() const { return spills_.size(); }

 private:
  std::optional<std::uint32_t> take_buffer(Spill& spill);
  void release_buffer(Spill& spill, std::uint32_t buffer);
  bool take_slots(Spill& spill, std::uint32_t count);
  void release_slots(Spill& spill);
  void forget_if_over(const Spill& spill);
  void add_disk_job(SpillJob::Kind kind, Spill& spill, const SpillPiece& piece, TimePoint now);
  void add_job(SpillJob::Kind kind, const Spill& spill, const SpillPiece& piece);

  SpillLimits limits_;
  FairShares<TenantId> slot_shares_{0};
  FairShares<TenantId> buffer_shares_{0};
  std::vector<std::uint32_t> free_slots_;
  std::uint32_t unused_slots_from_ = 0;
  std::vector<std::uint32_t> free_buffers_;
  std::map<SpillId, Spill> spills_;
  std::uint64_t ids_ = 0;
  TimePoint paused_until_;
  std::vector<SpillJob> jobs_;
  std::size_t at_disk_ = 0;  // jobs of all spills not answered yet, ended spills included
  TimePoint disk_since_;     // while `at_disk_` > 0: like Spill::progressed, for all spills
};

}  // namespace leasehold
