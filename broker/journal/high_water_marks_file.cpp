#include "broker/journal/high_water_marks_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <sstream>

#include "common/machine/unique_fd.hpp"

namespace leasehold::journal {
namespace {

/// The lease word has 48 bits for the generation.
constexpr std::uint64_t kLargestGeneration = 1ull << 48;
constexpr std::size_t kMaxFileBytes = 6 * 21;  // six numbers, each with 20 digits and a separator
constexpr std::int64_t kStartOf2026UnixS = 1'767'225'600;
constexpr int kIdsPerSecondBits = 16;
constexpr int kExtentsPerSecondBits = 24;

std::string text_of(const HighWaterMarks& marks, const FileIdentity& file) {
  return fmt::format("{} {} {} {} {} {}\n", marks.generations, marks.attachments, marks.extents,
                     marks.regions, file.inode, file.born_unix_ns);
}

struct Line {
  HighWaterMarks marks;
  FileIdentity file;
};

/// Rejects a line that differs from what a broker writes, because the file is then incomplete or
/// was not written by a broker.
Result<Line> parse(const std::string& text, const std::string& path) {
  Line line;
  std::istringstream words(text);
  words >> line.marks.generations >> line.marks.attachments >> line.marks.extents >>
      line.marks.regions >> line.file.inode >> line.file.born_unix_ns;
  const bool is_in_range = line.marks.generations <= kLargestGeneration;
  if (words && is_in_range && text_of(line.marks, line.file) == text) return line;
  return fail(
      Errc::FileCorrupt,
      fmt::format("{} does not hold marks; restore it from a backup, or end all workers and "
                  "remove it together with the journal and token.key",
                  path));
}

}  // namespace

HighWaterMarks higher(const HighWaterMarks& a, const HighWaterMarks& b) {
  return {.generations = std::max(a.generations, b.generations),
          .attachments = std::max(a.attachments, b.attachments),
          .extents = std::max(a.extents, b.extents),
          .regions = std::max(a.regions, b.regions)};
}

HighWaterMarks ids_issued_before(std::int64_t now_unix_s) {
  const std::int64_t seconds = std::max<std::int64_t>(0, now_unix_s - kStartOf2026UnixS);
  const std::uint64_t ids = static_cast<std::uint64_t>(seconds) << kIdsPerSecondBits;
  return {.generations = std::min(ids, kLargestGeneration),
          .attachments = ids,
          .extents = static_cast<std::uint64_t>(seconds) << kExtentsPerSecondBits,
          .regions = ids};
}

Result<HighWaterMarksFile> HighWaterMarksFile::open(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  HighWaterMarksFile opened(path);
  if (!fd && errno == ENOENT) return opened;
  if (!fd) return state_file_error(path, errno);
  std::array<char, kMaxFileBytes + 1> text{};
  const ssize_t got = ::read(fd.get(), text.data(), text.size());
  if (got < 0) return fail_errno(Errc::SystemError, path, errno);
  const Line line = TRY(parse({text.data(), static_cast<std::size_t>(got)}, path));
  const FileIdentity file = TRY(identity_of(fd, path));
  opened.marks_ = line.marks;
  opened.is_original_ = line.file == file;
  return opened;
}

Result<void> HighWaterMarksFile::raise(const HighWaterMarks& marks) {
  TRY(write_state_file(path_, [&](const FileIdentity& file) { return text_of(marks, file); }));
  marks_ = marks;
  is_original_ = true;
  return {};
}

}  // namespace leasehold::journal
