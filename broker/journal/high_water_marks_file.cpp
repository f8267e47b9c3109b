#include "broker/journal/high_water_marks_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <sstream>

#include "broker/journal/state_file.hpp"
#include "common/unique_fd.hpp"

namespace leasehold::journal {
namespace {

/// The lease word has 48 bits for the generation.
constexpr std::uint64_t kLargestGeneration = 1ull << 48;
constexpr std::size_t kMaxFileBytes = 4 * 21;  // 20 digits and a separator each

std::string text_of(const Reserved& marks) {
  return fmt::format("{} {} {} {}\n", marks.generations, marks.attachments, marks.extents,
                     marks.regions);
}

/// Rejects a line that differs from what `text_of` writes: the file is torn or foreign.
Result<Reserved> parse(const std::string& line, const std::string& path) {
  Reserved marks;
  std::istringstream words(line);
  words >> marks.generations >> marks.attachments >> marks.extents >> marks.regions;
  if (words && text_of(marks) == line && marks.generations <= kLargestGeneration) return marks;
  return fail(Errc::FileCorrupt,
              fmt::format("{} does not hold four marks; end all workers, then remove it together "
                          "with the journal and token.key",
                          path));
}

}  // namespace

Result<void> rename_old_marks_file(const std::string& old_path, const std::string& path) {
  if (::access(path.c_str(), F_OK) == 0) return {};
  if (::rename(old_path.c_str(), path.c_str()) == 0 || errno == ENOENT) return {};
  return state_file_error(old_path, errno);
}

Reserved higher(const Reserved& a, const Reserved& b) {
  return {.generations = std::max(a.generations, b.generations),
          .attachments = std::max(a.attachments, b.attachments),
          .extents = std::max(a.extents, b.extents),
          .regions = std::max(a.regions, b.regions)};
}

Result<HighWaterMarksFile> HighWaterMarksFile::open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!fd && errno == ENOENT) return HighWaterMarksFile(path, {});
  if (!fd) return state_file_error(path, errno);
  std::array<char, kMaxFileBytes + 1> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(Errc::SystemError, path, errno);
  return HighWaterMarksFile(path, TRY(parse({text.data(), static_cast<std::size_t>(got)}, path)));
}

Result<void> HighWaterMarksFile::raise(const Reserved& marks) {
  TRY(write_state_file(path_, text_of(marks)));
  marks_ = marks;
  return {};
}

}  // namespace leasehold::journal
