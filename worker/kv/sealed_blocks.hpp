/// Seals the KV blocks of one lease before they leave memory: encrypted and authenticated with a
/// key that exists only in this process and only until the lease is fenced.
///
/// One stream for each spilled sequence, one message for each block, in order; the last one has the
/// stream's final tag. The additional data of a message names lease, stream, block and layout. So
/// bytes that were changed, reordered, cut off or taken from another sequence do not open.
///
/// Keys and stream states lie in memory of libsodium: guarded, locked where RLIMIT_MEMLOCK allows
/// it, zeroed when freed. Source: crypto_secretstream_xchacha20poly1305, sodium_malloc.
/// Threads: any. A call waits at most for one block that another thread seals or opens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <span>

#include "common/ids.hpp"

namespace leasehold {

using SpillId = StrongId<struct SpillTag>;  ///< One spill of one sequence; never reused.

/// Where a block is in its stream.
struct SealedBlock {
  SpillId stream;
  std::uint32_t number = 0;
  bool is_last = false;
};

class LeaseSeal {
 public:
  static constexpr std::size_t kSealBytes = 17;  ///< That a sealed block is longer.

  /// `layout` differs between blocks of different shapes. Errors: OutOfMemory, SystemError.
  static Result<std::shared_ptr<LeaseSeal>> create(LeaseId lease, std::uint64_t layout);

  /// Precondition: `sealed` is kSealBytes longer than `block`; blocks 0, 1, … in order.
  /// Errors: LeaseFenced once the key is forgotten; FileCorrupt when the block before it failed;
  /// OutOfMemory.
  Result<void> seal(const SealedBlock& at, std::span<const std::byte> block,
                    std::span<std::byte> sealed);
  /// The same. Writes nothing but zeros to `block` when it fails. Errors: LeaseFenced; FileCorrupt
  /// also when the bytes are not those that were sealed at this place.
  Result<void> open(const SealedBlock& at, std::span<const std::byte> sealed,
                    std::span<std::byte> block);

  /// The stream is not opened any more.
  void end_stream(SpillId stream);
  /// Erases the key and every stream's state: what was sealed can never be opened again.
  void forget();

 private:
  struct SecretDeleter {
    void operator()(unsigned char* secret) const;
  };
  using Secret = std::unique_ptr<unsigned char[], SecretDeleter>;
  struct Stream {
    std::unique_ptr<unsigned char[]> header;
    Secret state;
    std::uint32_t next = 0;
    bool is_opening = false;
  };
  LeaseSeal(LeaseId lease, std::uint64_t layout, Secret key)
      : lease_(lease), layout_(layout), key_(std::move(key)) {}
  static Result<Secret> allocate(std::size_t size_bytes);
  Result<void> check_key() const;
  Result<Stream*> stream_to_seal(const SealedBlock& at);
  Result<Stream*> stream_to_open(const SealedBlock& at);

  LeaseId lease_;
  std::uint64_t layout_;
  std::mutex mutex_;
  Secret key_;  // null once forgotten
  std::map<SpillId, Stream> streams_;
};

}  // namespace leasehold
