/// Moves blocks between staging buffers in this process and their slots in the spill file.
///
///   engine ──copy units──► staging ──sealed──► spill file      Write
///   engine ◄──copy units── staging ◄──opened── spill file      Read, later Clear
///
/// Leased memory is never touched here: the engine copies blocks to and from a staging buffer
/// through the launch gate. A job's buffer belongs to the store until that job's answer, and is
/// zero afterwards, except after a successful Read. `forget` clears a lease's data in all buffers
/// at once, whether or not the disk answers.
///
/// Threads: `execute` on one thread at a time, which may block for as long as the disk does; the
/// rest on any thread. `forget` waits at most while `execute` seals or opens one block.
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
    Write,  ///< Seals the buffer's block and writes it to the slot.
    Read,   ///< Reads the slot and opens its block into the buffer.
    Clear,  ///< Zeroes the buffer.
    End,    ///< Ends the stream; has neither a buffer nor an answer.
  };
  Kind kind = Kind::Clear;
  LeaseId lease;
  SealedBlock block;
  std::uint32_t slot = 0;           ///< Slot of the file.
  std::uint32_t buffer = 0;         ///< Staging buffer.
  std::shared_ptr<LeaseSeal> seal;  ///< The seal of `lease`; unused by Clear.
};

struct SpillAnswer {
  SpillJob job;
  Result<void> result;
  Duration duration{};  ///< Duration of the work, without the time in the queue.
};

class SpillStore {
 public:
  /// The staging memory has at most `staging_bytes`, but at least four blocks. Errors: BadRequest
  /// when the file has no room for a block; OutOfMemory, SystemError.
  static constexpr std::uint64_t kStagingBytes = 32u << 20;
  static Result<std::unique_ptr<SpillStore>> create(SpillFile file, std::uint64_t block_size_bytes,
                                                    std::uint64_t staging_bytes = kStagingBytes);

  std::uint32_t slot_count() const { return slots_; }
  std::uint32_t buffer_count() const { return buffers_; }
  /// The buffer's address for the engine's copies. From this call on, the buffer counts as holding
  /// data of `lease`.
  Leased<std::byte> staging(std::uint32_t buffer, LeaseId lease);
  /// Clears the buffers that hold data of a lease. Precondition: the engine makes no more copies of
  /// the lease, and its key is erased, so that no later job writes its data there.
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
  std::mutex plain_mutex_;  // guards the buffers, except against the engine's copies
  std::mutex owners_mutex_;
  std::vector<std::optional<LeaseId>> owners_;  // the lease whose data each buffer holds
};

/// Accepts jobs from the engine and returns their answers. Jobs of different streams may be
/// answered in any order.
class SpillQueue {
 public:
  virtual ~SpillQueue() = default;
  /// Never blocks on the disk. The jobs of a stream run in the order of the calls.
  virtual void post(SpillJob job) = 0;
  virtual std::vector<SpillAnswer> take_answers() = 0;
};

}  // namespace leasehold
