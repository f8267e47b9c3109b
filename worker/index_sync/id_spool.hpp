/// The ids that the index may still know, in a file that outlives the process: a worker that is
/// killed removes none of its ids, so the next one with this file does.
///
///   slot 0        slot 1        slot 2
///   ann/req-1\0…  \0…           bob/req-7\0…      256 bytes each; an empty slot is zero
///
/// A write changes one slot, which never crosses a page, so a kill leaves the old or the new slot.
/// Nothing is synced: after a crash of the machine ids may be missing or listed again.
///
/// The file is input. Slots that hold no id are ignored.
///
/// Threads: one at a time. A call may take as long as the disk does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/ids.hpp"
#include "common/unique_fd.hpp"

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

  /// What the file held when it was opened. These ids stay in it until they are erased.
  std::vector<OwnedId> take_left() { return std::exchange(left_, {}); }

  /// Repeating it changes nothing. An id that finds no slot or cannot be written is counted.
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
  std::uint32_t n_slots_ = 0;  // of the file
  std::vector<OwnedId> left_;
  std::uint64_t not_kept_ = 0;
};

}  // namespace leasehold
