#include "broker/server/start/token_key_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "broker/journal/state_file.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold {
namespace {

constexpr mode_t kGroupAndOthers = 0077;
constexpr std::size_t kHexDigits = 2 * sizeof(TokenKey);

Result<TokenKey> read_key(const UniqueFd& fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0) return fail_errno(Errc::SystemError, path, errno);
  if ((status.st_mode & kGroupAndOthers) != 0 || status.st_uid != ::geteuid()) {
    return fail(Errc::PermissionDenied,
                fmt::format("{} has mode {:o} and owner {}; set mode 0600 and owner {}", path,
                            status.st_mode & 0777, status.st_uid, ::geteuid()));
  }
  std::string text(kHexDigits + 1, '\0');
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(Errc::SystemError, path, errno);
  text.resize(static_cast<std::size_t>(got));
  auto key = token_key_from_hex(text);
  if (!key) return fail(Errc::FileCorrupt, fmt::format("{} does not hold a key; remove it", path));
  return key;
}

Result<TokenKey> create_key(const std::string& path) {
  const TokenKey key = random_token_key();
  TRY(journal::write_state_file(path, [&](const auto&) { return to_hex(key); }));
  return key;
}

}  // namespace

Result<TokenKey> load_or_create_token_key(const std::string& state_dir, bool replace) {
  const std::string path = state_dir + "/token.key";
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (fd) {
    const TokenKey key = TRY(read_key(fd, path));
    return replace ? create_key(path) : key;
  }
  if (errno != ENOENT) return journal::state_file_error(path, errno);
  return create_key(path);
}

}  // namespace leasehold
