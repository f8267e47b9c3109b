#include "broker/journal/audit_head.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <sstream>

#include "broker/journal/state_file.hpp"
#include "common/machine/unique_fd.hpp"

namespace leasehold::journal {
namespace {

constexpr std::size_t kHashDigits = 64;
constexpr std::size_t kMaxHeadBytes = 20 + 1 + kHashDigits + 1;

std::string head_text(const audit::Link& head) {
  return fmt::format("{} {}\n", head.sequence, head.hash);
}

/// Parses the file. Rejects a line that differs from what `head_text` writes, because the file is
/// then incomplete or was not written by a broker.
Result<audit::Link> parse_head(const std::string& line, const std::string& path) {
  audit::Link head;
  std::istringstream words(line);
  words >> head.sequence >> head.hash;
  const bool is_hash = head.hash.size() == kHashDigits &&
                       head.hash.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (words && is_hash && head_text(head) == line) return head;
  return fail(
      Errc::FileCorrupt,
      fmt::format("{} does not name an audit record; restore it from a backup, or remove it "
                  "to take the end of the journal's chain as its head",
                  path));
}

}  // namespace

Result<std::optional<audit::Link>> read_audit_head(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return std::nullopt;
  if (!fd) return state_file_error(path, errno);
  std::array<char, kMaxHeadBytes + 1> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(Errc::SystemError, path, errno);
  return TRY(parse_head({text.data(), static_cast<std::size_t>(got)}, path));
}

Result<void> write_audit_head(const std::string& path, const audit::Link& head) {
  return write_state_file(path, [&head](const FileIdentity&) { return head_text(head); });
}

}  // namespace leasehold::journal
