#include "tools/cell/membership_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/machine/private_directory.hpp"
#include "common/machine/process.hpp"
#include "common/machine/replace_file.hpp"
#include "common/machine/text_file.hpp"

namespace leasehold::cell {
namespace {

constexpr std::size_t kMaxFileBytes = 64 << 10;

Result<UniqueFd> lock_directory(const std::string& directory) {
  UniqueFd fd(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return fail_file("open the state directory " + directory, errno);
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_file("stat " + directory, errno);
  TRY(check_private_directory(status, "state", directory));
  if (::flock(fd.get(), LOCK_EX | LOCK_NB) == 0) return fd;
  return fail(Errc::SocketInUse,
              fmt::format("another agent uses the state directory {}; stop it, or give this one "
                          "another --state-dir and --host",
                          directory));
}

}  // namespace

Result<MembershipFile> MembershipFile::open(const std::string& directory) {
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST)
    return fail_file("make the state directory " + directory, errno);
  UniqueFd lock = TRY(lock_directory(directory));
  std::string boot = TRY(boot_id());
  return MembershipFile(std::move(lock), directory, std::move(boot));
}

Result<std::optional<SavedMembership>> MembershipFile::read() const {
  const auto text = read_trusted_file(path(), kMaxFileBytes);
  if (!text && text.error().code == Errc::FileNotFound) return std::nullopt;
  if (!text) return std::unexpected(text.error());
  return TRY(read_saved_membership(*text, boot_id_));
}

Result<void> MembershipFile::write(const std::optional<SavedMembership>& saved) const {
  if (!saved) {
    if (::unlink(path().c_str()) != 0 && errno != ENOENT)
      return fail_file("remove " + path(), errno);
    return {};
  }
  // The file is of use only until the machine stops.
  return replace_file(path(), text_of(*saved, boot_id_), {.survives_power_cut = false});
}

}  // namespace leasehold::cell
