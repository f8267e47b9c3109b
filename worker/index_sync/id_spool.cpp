#include "worker/index_sync/id_spool.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "worker/kv/request_ids.hpp"

namespace leasehold {
namespace {

using Slot = std::array<char, IdSpool::kSlotBytes>;

/// Returns nothing for a slot without an id.
std::optional<IdSpool::OwnedId> id_in(const Slot& slot) {
  const std::string_view text(slot.data(), ::strnlen(slot.data(), slot.size()));
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  const auto tenant = TenantId::parse(text.substr(0, slash));
  const auto id = RequestId::parse(text.substr(slash + 1));
  if (!tenant || !id) return std::nullopt;
  return IdSpool::OwnedId{*tenant, *id};
}

Result<void> check_own_file(int fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd, &status) != 0) return fail_errno(Errc::SystemError, "stat of " + path, errno);
  if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid() && status.st_nlink == 1) return {};
  return fail(
      Errc::PermissionDenied,
      fmt::format("{} is not a file of user {} with one name; remove it", path, ::geteuid()));
}

}  // namespace

Result<IdSpool> IdSpool::open(const std::string& path, std::size_t max_ids) {
  // Without O_NONBLOCK a named pipe at this path could block the start.
  constexpr int kFlags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
  UniqueFd fd(::open(path.c_str(), kFlags, 0600));
  if (!fd && errno == ELOOP)
    return fail(Errc::PermissionDenied, fmt::format("{} is a symbolic link; remove it", path));
  if (!fd) return fail_file("open " + path, errno);
  TRY(check_own_file(fd.get(), path));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return fail_errno(Errc::SystemError, "lock " + path, errno);
    return fail(Errc::SocketInUse,
                fmt::format("another worker uses {}; end it or choose another --listen", path));
  }
  IdSpool spool(std::move(fd), max_ids);
  TRY(spool.read());
  return spool;
}

/// Reads the file and compacts it: moves each id to the first slots, never to a later slot than
/// before, and truncates the file.
Result<void> IdSpool::read() {
  Slot slot{};
  for (std::size_t at = 0; at < max_ids_; ++at) {
    const ssize_t got =
        ::pread(fd_.get(), slot.data(), slot.size(), static_cast<off_t>(at * kSlotBytes));
    if (got < 0) return fail_errno(Errc::SystemError, "read the ids of the last worker", errno);
    if (got < static_cast<ssize_t>(slot.size())) break;
    if (auto owned = id_in(slot)) {
      keep(*owned);
      left_.push_back(*std::move(owned));
    }
  }
  if (::ftruncate(fd_.get(), static_cast<off_t>(n_slots_ * kSlotBytes)) != 0)
    return fail_errno(Errc::SystemError, "cut off the ids of the last worker", errno);
  return {};
}

void IdSpool::keep(const OwnedId& owned) {
  if (slots_.contains(owned.id)) return;
  const bool is_new = free_.empty();
  const std::uint32_t slot = is_new ? n_slots_ : free_.back();
  const RequestId text = to_engine_request_id(owned.tenant, owned.id);
  if (slot >= max_ids_ || !write(slot, text.value)) {
    ++not_kept_;
    return;
  }
  is_new ? void(++n_slots_) : free_.pop_back();
  slots_.emplace(owned.id, slot);
}

/// An id that cannot be erased keeps its slot: the next worker removes it again, which the index
/// answers with not_found.
void IdSpool::erase(const RequestId& id) {
  const auto found = slots_.find(id);
  if (found == slots_.end() || !write(found->second, {})) return;
  free_.push_back(found->second);
  slots_.erase(found);
}

bool IdSpool::write(std::uint32_t slot, std::string_view text) const {
  Slot bytes{};
  text.copy(bytes.data(), bytes.size() - 1);
  const auto at = static_cast<off_t>(slot * kSlotBytes);
  return ::pwrite(fd_.get(), bytes.data(), bytes.size(), at) == static_cast<ssize_t>(bytes.size());
}

}  // namespace leasehold
