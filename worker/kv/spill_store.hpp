/// Moves blocks between staging buffers in this process and their slots in the spill file.
///
///   engine ──copy units──► staging ──sealed──► spill file      Write
///   engine ◄──copy units── staging ◄──opened── spill file      Read, later Clear
///
/// Leased memory is never touched here: the engine copies blocks to and from a staging buffer
/// through the launch gate. A buffer belongs to the store from the job that names it until that
/// job's answer, and is zero afterwards, except after a Read that succeeded. `forget` clears what
/// a lease has in any buffer at once, whether or not the disk answers.
///
/// Threads: `execute` on one at a time, which may block for as long as the disk does; the rest on
/// any; `forget` waits at most for a block that `execute` seals or opens.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "common/clock.hpp"
#include "ipc/region/mapping.hpp"
#include "worker/kv/sealed_blocks.hpp"
#include "worker/kv/spill_file.hpp"

namespace leasehold {

struct SpillJob {
  enum class Kind : std::uint8_t {
    Write,  ///< Seals the buffer into the slot.
    Read,   ///< Opens the slot into the buffer.
    Clear,  ///< Zeroes the buffer.
    End,    ///< Forgets the stream; has neither buffer nor answer.
  };
  Kind kind = Kind::Clear;
  LeaseId lease;
  SealedBlock block;
  std::uint32_t slot = 0;           ///< In the file.
  std::uint32_t buffer = 0;         ///< In staging.
  std::shared_ptr<LeaseSeal> seal;  ///< Of `lease`; unused by Clear.
};

struct SpillAnswer {
  SpillJob job;
  Result<void> result;
  Duration duration{};  ///< Of the work, without the wait for it.
};

class SpillStore {
 public:
  /// With staging of at most this size, or four blocks. Errors: BadRequest when the file has no
  /// room for a block; OutOfMemory, SystemError.
  static constexpr std::uint64_t kStagingBytes = 32u << 20;
  static Result<std::unique_ptr<SpillStore>> create(SpillFile file, std::uint64_t block_size_bytes,
                                                    std::uint64_t staging_bytes = kStagingBytes);

  std::uint32_t slot_count() const { return slots_; }
  std::uint32_t buffer_count() const { return buffers_; }
  /// For the engine's copies of a block of this lease, whose bytes the buffer holds from here on.
  Leased<std::byte> staging(std::uint32_t buffer, LeaseId lease);
  /// Clears the buffers that hold bytes of a lease. Precondition: no copy of the lease is made any
  /// more, and its key is forgotten, so no later job puts bytes there.
  void forget(LeaseId lease);
  /// True when every byte of staging is zero. For tests.
  bool is_staging_clear() const;

  SpillAnswer execute(SpillJob job, const Clock& clock);

 private:
  SpillStore(SpillFile file, std::uint64_t block_size_bytes, std::uint32_t buffers,
             std::shared_ptr<std::byte> staging);
  Result<void> run(const SpillJob& job);
  Result<void> seal(const SpillJob& job);
  Result<void> open(const SpillJob& job);
  void clear(std::uint32_t buffer);
  void set_owner(std::uint32_t buffer, std::optional<LeaseId> owner);
  bool is_owner(std::uint32_t buffer, LeaseId lease);
  std::span<std::byte> plain(std::uint32_t buffer) const;

  SpillFile file_;
  std::uint64_t block_size_bytes_;
  std::uint32_t slots_;
  std::uint32_t buffers_;
  std::shared_ptr<std::byte> staging_;
  LeasedMapping leased_staging_;  // the same memory
  std::vector<std::byte> sealed_;
  std::mutex plain_mutex_;  // of the buffers, but for the engine's copies
  std::mutex owners_mutex_;
  std::vector<std::optional<LeaseId>> owners_;  // of what each buffer holds
};

/// Where the engine puts jobs, and gets answers, in any order between different streams.
class SpillQueue {
 public:
  virtual ~SpillQueue() = default;
  /// Never blocks on the disk. The jobs of a stream run in the order of the calls.
  virtual void post(SpillJob job) = 0;
  virtual std::vector<SpillAnswer> take_answers() = 0;
};

}  // namespace leasehold
