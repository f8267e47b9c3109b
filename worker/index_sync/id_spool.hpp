/// Keeps the ids that the index may still hold in a file that outlives the process. A killed worker
/// cannot remove its ids, so the next worker that opens the file does.
///
///   slot 0        slot 1        slot 2
///   ann/req-1\0…  \0…           bob/req-7\0…      256 bytes each; an empty slot is zero
///
/// A write changes one slot, which never crosses a page, so after a kill the slot holds either its
/// old or its new content. The file is not synced: after a crash of the machine ids may be missing,
/// or erased ids may reappear.
///
/// The file is untrusted input. Slots that do not contain an id are ignored.
///
/// Threads: one at a time. A call may take as long as the disk does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ids.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold {

class IdSpool {
 public:
  static constexpr std::size_t kSlotBytes = 256;
  static constexpr std::size_t kMaxIds = 65'536;

  struct OwnedId {
    TenantId tenant;
    RequestId id;
    bool operator==(const OwnedId&) const = default;
  };

  /// Opens or creates the file, and locks it until this object or the process ends. Errors: those
  /// of fail_file; SocketInUse if a running worker has the lock; PermissionDenied for a symbolic
  /// link, and for a file of another user or with another name.
  static Result<IdSpool> open(const std::string& path, std::size_t max_ids = kMaxIds);

  /// The ids that the file contained when it was opened. They stay in the file until they are
  /// erased.
  std::vector<OwnedId> take_leftover_ids() { return std::exchange(left_, {}); }

  /// Writes an id to a slot; idempotent. An id that cannot be written, or for which no slot is
  /// free, is counted.
  void keep(const OwnedId& owned);
  void erase(const RequestId& id);

  std::size_t size() const { return slots_.size(); }
  std::uint64_t not_kept() const { return not_kept_; }

 private:
  IdSpool(UniqueFd fd, std::size_t max_ids) : fd_(std::move(fd)), max_ids_(max_ids) {}
  Result<void> read();
  bool write(std::uint32_t slot, std::string_view text) const;

  UniqueFd fd_;
  std::size_t max_ids_;
  std::unordered_map<RequestId, std::uint32_t> slots_;
  std::vector<std::uint32_t> free_;
  std::uint32_t n_slots_ = 0;  // slots in the file
  std::vector<OwnedId> left_;
  std::uint64_t not_kept_ = 0;
};

}  // namespace leasehold
