/// Memory that is passed between processes as a file descriptor (a sealed memfd).
///
/// Ownership: the object owns its descriptor. Mappings and descriptors in other processes stay
/// valid after it is closed, so closing it does not prove that the memory is free;
/// `allocated_bytes` does.
/// Source: memfd_create(2), fcntl(2) F_ADD_SEALS, fallocate(2) FALLOC_FL_PUNCH_HOLE.
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/machine/unique_fd.hpp"

namespace leasehold {

/// Identifies an object across processes: descriptors with equal identities refer to one memory.
struct MemoryIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size_bytes = 0;
  bool operator==(const MemoryIdentity&) const = default;
};

class MemoryObject {
 public:
  struct Spec {
    const char* name = "leasehold";  ///< The name that /proc shows.
    std::size_t size_bytes = 0;
    /// Also forbids new seals. False when F_SEAL_WRITE is added later (weights).
    bool final_seals = true;
  };
  /// The object is zero-filled, is sealed against shrinking and growing, and has mode 0400, so that
  /// another user cannot re-open it. Errors: OutOfMemory, SystemError.
  static Result<MemoryObject> create(const Spec& spec);

  /// Takes over a received descriptor. Checks that it is a memfd whose size cannot change.
  /// Errors: UntrustedSegment.
  static Result<MemoryObject> adopt(UniqueFd fd);

  const UniqueFd& fd() const { return fd_; }
  UniqueFd release() && { return std::move(fd_); }
  std::size_t size_bytes() const { return size_bytes_; }

  /// A new descriptor that can only be read and mapped read-only.
  Result<UniqueFd> open_read_only() const;

  /// Forbids writing permanently. Errors: StillWritable while a writable mapping exists anywhere.
  Result<void> seal_against_writing();

  /// Releases every page to the kernel. All readers then see zeros.
  Result<void> punch();

  /// Bytes of physical memory the object uses now. More than 0 after a punch means that a process
  /// has touched the memory since.
  Result<std::size_t> allocated_bytes() const;

  Result<MemoryIdentity> identity() const;

 private:
  MemoryObject(UniqueFd fd, std::size_t size_bytes) : fd_(std::move(fd)), size_bytes_(size_bytes) {}

  UniqueFd fd_;
  std::size_t size_bytes_ = 0;
};

/// Does what MemoryObject::create does, but all pages are present and zero, as huge pages where the
/// kernel makes them. The object is mapped only during the call, which takes as long as clearing
/// the memory: do not call it on an I/O thread. Errors: as create; OutOfMemory.
Result<MemoryObject> create_present(const MemoryObject::Spec& spec);

}  // namespace leasehold
