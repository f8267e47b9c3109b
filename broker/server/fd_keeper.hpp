/// Keeps descriptors alive while the broker is down: the service manager's store, where there is
/// one, and what came back from it.
///
/// Names: `table`, `socket`, `segment-<attachment>`, `wakeup_fd-<attachment>`,
/// `pidfd-<attachment>`, `weights-<region>`. Live extents are not kept here; their workers hold and
/// re-deliver them. Source: sd_notify(3) FDSTORE, FDNAME, FDPOLL, FDSTOREREMOVE; sd_listen_fds(3).
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "common/unique_fd.hpp"

namespace leasehold {

/// The names under which descriptors are kept.
namespace kept {
inline constexpr std::string_view kTable = "table";
inline constexpr std::string_view kSocket = "socket";
std::string segment(std::uint64_t attachment);
std::string wakeup_fd(std::uint64_t attachment);
std::string pidfd(std::uint64_t attachment);
std::string weights(std::uint64_t region);
}  // namespace kept

/// Called where a descriptor becomes worth surviving for, and where it stops being so: table and
/// socket at start, worker lines at attach and exit, weights at publication and eviction.
/// Ownership: a kept descriptor is a duplicate. Threads: one.
class FdKeeper {
 public:
  virtual ~FdKeeper() = default;
  /// Precondition: nothing is kept under this name.
  /// Errors: SystemError when the store cannot be reached; the broker then runs on without.
  virtual Result<void> keep(std::string_view name, const UniqueFd& fd) = 0;
  virtual void remove(std::string_view name) = 0;
  /// For a broker that stops for good, or cannot use what was kept.
  virtual void remove_all() = 0;
};

/// For a broker that nobody restarts with its descriptors: everything dies with it.
class NoFdKeeper final : public FdKeeper {
 public:
  Result<void> keep(std::string_view, const UniqueFd&) override { return {}; }
  void remove(std::string_view) override {}
  void remove_all() override {}
};

/// The store of the manager behind $NOTIFY_SOCKET. A manager that stores nothing
/// (FileDescriptorStoreMax=0) drops what it is sent without a word, so success here promises
/// nothing: what was kept is what comes back.
class ServiceManagerFdKeeper final : public FdKeeper {
 public:
  using Names = std::set<std::string, std::less<>>;

  /// `kept`: what is in the store already.
  explicit ServiceManagerFdKeeper(Names kept) : names_(std::move(kept)) {}

  Result<void> keep(std::string_view name, const UniqueFd& fd) override;
  void remove(std::string_view name) override;
  void remove_all() override;

 private:
  Names names_;
};

/// The one for this process: by whether a service manager asked to be told things.
std::unique_ptr<FdKeeper> make_fd_keeper(ServiceManagerFdKeeper::Names kept = {});

/// Tells the service manager, if there is one: "READY=1", "STOPPING=1".
void notify_service_manager(const std::string& state);

/// What the service manager handed to this process at its start.
class KeptDescriptors {
 public:
  KeptDescriptors() = default;

  /// Takes LISTEN_FDS of this process, once; children will not see the variables. All become
  /// close-on-exec. A name that came more than once names none of them: which one is meant cannot
  /// be known, and without it the broker starts as if it had not been kept.
  /// Errors: SystemError when the variables are damaged.
  static Result<KeptDescriptors> from_service_manager();

  void add(std::string name, UniqueFd fd);
  bool has(std::string_view name) const { return by_name_.contains(name); }
  /// The descriptor, which is the caller's from now on; nothing when there is none.
  UniqueFd take(std::string_view name);
  /// Of everything that is in the store, also of what was refused or taken.
  const std::set<std::string, std::less<>>& stored_names() const { return stored_; }
  std::set<std::string, std::less<>> names() const;

 private:
  std::map<std::string, UniqueFd, std::less<>> by_name_;
  std::set<std::string, std::less<>> stored_;
};

}  // namespace leasehold
