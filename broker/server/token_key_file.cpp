#include "broker/server/token_key_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "broker/journal/state_file.hpp"
#include "common/unique_fd.hpp"

namespace leasehold {
namespace {

constexpr mode_t kOwnerOnly = 0600;
constexpr mode_t kAnybodyElse = 0077;
constexpr std::size_t kHexDigits = 2 * sizeof(TokenKey);

Result<TokenKey> read_key(const UniqueFd& fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(Errc::SystemError, path, errno);
  if ((status.st_mode & kAnybodyElse) != 0 || status.st_uid != ::geteuid()) {
    return fail(Errc::PermissionDenied,
                fmt::format("{} must belong to user {} alone, mode 0600", path, ::geteuid()));
  }
  std::string text(kHexDigits + 1, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(Errc::SystemError, path, errno);
  text.resize(static_cast<std::size_t>(got));
  auto key = token_key_from_hex(text);
  if (!key) return fail(Errc::FileCorrupt, fmt::format("{} holds no key; remove it", path));
  return key;
}

/// Written beside and moved into place, so that a crash leaves no half of a key.
Result<TokenKey> create_key(const std::string& path) {
  const std::string fresh_path = path + ".new";
  ::unlink(fresh_path.c_str());
  UniqueFd fd(::open(fresh_path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kOwnerOnly));
  if (!fd) return journal::state_file_error(fresh_path, errno);
  const TokenKey key = random_token_key();
  const std::string text = to_hex(key);
  const bool written =
      ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      ::fsync(fd.get()) == 0 && ::rename(fresh_path.c_str(), path.c_str()) == 0;
  if (!written) return journal::state_file_error(fresh_path, errno);
  return key;
}

}  // namespace

Result<TokenKey> load_or_create_token_key(const std::string& state_dir) {
  const std::string path = state_dir + "/token.key";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd) return read_key(fd, path);
  if (errno != ENOENT) return journal::state_file_error(path, errno);
  return create_key(path);
}

}  // namespace leasehold
