/// Seals the KV blocks of one lease before they leave memory: encrypts and authenticates them with
/// a key that exists only in this process and only until the lease is fenced.
///
/// Each spilled sequence is one stream and each block one message, in order; the last message has
/// the stream's final tag. The additional data of a message contains lease, stream, block and
/// layout, so bytes that were changed, reordered, truncated or copied from another sequence fail to
/// open.
///
/// Keys and stream states lie in memory from libsodium, which is guarded, locked where
/// RLIMIT_MEMLOCK allows it, and zeroed when freed. Source: crypto_secretstream_xchacha20poly1305,
/// sodium_malloc.
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

/// The position of a block in its stream.
struct SealedBlock {
  SpillId stream;
  std::uint32_t number = 0;
  bool is_last = false;
};

class LeaseSeal {
 public:
  /// Difference in size between a sealed block and its plain text.
  static constexpr std::size_t kSealBytes = 17;

  /// `layout` identifies the layout of the blocks. Errors: OutOfMemory, SystemError.
  static Result<std::shared_ptr<LeaseSeal>> create(LeaseId lease, std::uint64_t layout);

  /// Precondition: `sealed` is kSealBytes longer than `block`; blocks 0, 1, … in order.
  /// Errors: LeaseFenced once the key is erased; FileCorrupt when the block before failed;
  /// OutOfMemory.
  Result<void> seal(const SealedBlock& at, std::span<const std::byte> block,
                    std::span<std::byte> sealed);
  /// The inverse of `seal`, with the same precondition. On failure `block` contains only zeros.
  /// Errors: LeaseFenced; FileCorrupt, also when the bytes are not those sealed at this position.
  Result<void> open(const SealedBlock& at, std::span<const std::byte> sealed,
                    std::span<std::byte> block);

  /// Erases the state of a stream that will not be opened again.
  void end_stream(SpillId stream);
  /// Erases the key and every stream's state: sealed blocks can never be opened again.
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
