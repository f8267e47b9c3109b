/// Keeps descriptors open while the broker is down, in the service manager's descriptor store.
///
/// Names: `table`, `socket`, `segment-<attachment>`, `wakeup_fd-<attachment>`,
/// `pidfd-<attachment>`, `spill-<attachment>`, `weights-<region>`. Live extents are not stored:
/// their workers hold them and redeliver them. Source: sd_notify(3) FDSTORE, FDNAME, FDPOLL,
/// FDSTOREREMOVE; sd_listen_fds(3).
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "common/machine/unique_fd.hpp"
#include "ipc/segment/segment_layout.hpp"

namespace leasehold {

/// Names of stored descriptors.
namespace kept {
inline constexpr std::string_view kTable = "table";
inline constexpr std::string_view kSocket = "socket";
/// The socket of leasehold-broker.socket. It belongs to the service manager and is not in the
/// store.
inline constexpr std::string_view kActivation = "listen";
std::string segment(std::uint64_t attachment);
std::string wakeup_fd(std::uint64_t attachment);
std::string pidfd(std::uint64_t attachment);
std::string spill(std::uint64_t attachment);
std::string weights(std::uint64_t region);

/// The most descriptors that a broker stores: table and socket, four for each worker, and one for
/// each weights region, which the users that may run workers share equally.
constexpr std::uint32_t most(std::uint32_t max_weights_regions) {
  return 2 + 4 * kMaxWorkers + max_weights_regions;
}

/// A message that says what to set, if the service manager stores fewer descriptors than `needed`,
/// so that some would be lost in a restart. `fdstore` is $FDSTORE, which systemd sets since version
/// 254. Returns nothing if `fdstore` is null or malformed.
std::optional<std::string> shortage(const char* fdstore, std::uint32_t needed);
}  // namespace kept

/// The store of the service manager behind $NOTIFY_SOCKET. Without a service manager, every call
/// succeeds and does nothing. A manager with FileDescriptorStoreMax=0 silently drops descriptors,
/// so success does not mean that a descriptor will be returned.
///
/// Table and socket are stored at start, a worker's descriptors from attach to exit, and weights
/// from publication to eviction. Ownership: the store holds a duplicate. Threads: one.
class FdKeeper {
 public:
  using Names = std::set<std::string, std::less<>>;

  /// `kept`: the names already in the store.
  explicit FdKeeper(Names kept = {}) : names_(std::move(kept)) {}

  /// Precondition: the name is not in use.
  /// Errors: those of send_to_service_manager; the broker then serves without the store.
  Result<void> keep(std::string_view name, const UniqueFd& fd);
  void remove(std::string_view name);
  /// Call it when the broker stops and is not restarted.
  void remove_all();

 private:
  Names names_;
};

/// Descriptors that the service manager passed to this process at start.
class KeptDescriptors {
 public:
  KeptDescriptors() = default;

  /// Takes the LISTEN_FDS descriptors once and removes the variables from the environment. All
  /// descriptors become close-on-exec. Descriptors with a duplicate name are closed, because it is
  /// unknown which one is right; the broker then starts without that name.
  /// Errors: SystemError when the variables are malformed.
  static Result<KeptDescriptors> from_service_manager();

  void add(std::string name, UniqueFd fd);
  bool has(std::string_view name) const { return by_name_.contains(name); }
  /// Moves the descriptor to the caller; empty if there is none with this name.
  UniqueFd take(std::string_view name);
  /// Names of everything in the store, including duplicates and descriptors already taken.
  const std::set<std::string, std::less<>>& stored_names() const { return stored_; }
  std::set<std::string, std::less<>> names() const;

 private:
  std::map<std::string, UniqueFd, std::less<>> by_name_;
  std::set<std::string, std::less<>> stored_;
};

}  // namespace leasehold
