#include "kernels/model/gguf/gguf.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "common/cli/suggest.hpp"
#include "common/expects.hpp"

namespace leasehold {
namespace {

Result<UniqueFd> open_for_reading(const std::string& path) {
  // O_NONBLOCK: opening a FIFO by mistake must not wait for a writer.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd) return fd;
  if (errno == ENOENT || errno == ENOTDIR)
    return fail(Errc::FileNotFound, fmt::format("{}: no such model file; check the path", path));
  return fail_errno(errno == EACCES ? Errc::PermissionDenied : Errc::SystemError,
                    fmt::format("open {}", path), errno);
}

std::int64_t nanoseconds(const struct timespec& time) {
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

Result<FileIdentity> identity_from(const struct stat& status, const std::string& path) {
  if (S_ISDIR(status.st_mode))
    return fail(Errc::BadRequest, fmt::format("{} is a directory; name a .gguf file", path));
  if (!S_ISREG(status.st_mode))
    return fail(Errc::FileCorrupt, fmt::format("{}: is not a regular file", path));
  return FileIdentity{.device = status.st_dev,
                      .inode = status.st_ino,
                      .size_bytes = static_cast<std::uint64_t>(status.st_size),
                      .mtime_ns = nanoseconds(status.st_mtim),
                      .ctime_ns = nanoseconds(status.st_ctim)};
}

/// The key of the file that is most similar to a missing one, among those of the same family;
/// empty if none is similar.
std::string nearest_key(const GgufDirectory& directory, std::string_view missing) {
  constexpr std::size_t kMostKeys = 256;  // each comparison takes quadratic time
  constexpr std::size_t kLongestKey = 64;
  const std::string_view family = missing.substr(0, missing.find('.') + 1);
  std::vector<std::string> keys;
  for (const auto& [key, value] : directory.metadata)
    if (keys.size() < kMostKeys && key.size() <= kLongestKey && key.starts_with(family))
      keys.emplace_back(key);
  return missing.size() <= kLongestKey ? nearest(missing, keys) : "";
}

}  // namespace

Result<FileIdentity> FileIdentity::of_descriptor(const UniqueFd& fd, const std::string& path) {
  struct stat status{};
  if (::fstat(fd.get(), &status) != 0)
    return fail_errno(Errc::SystemError, fmt::format("fstat {}", path), errno);
  return identity_from(status, path);
}

Result<FileIdentity> FileIdentity::of_path(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) == 0) return identity_from(status, path);
  return fail_errno(errno == ENOENT ? Errc::FileNotFound : Errc::SystemError,
                    fmt::format("stat {}", path), errno);
}

void GgufFile::Unmap::operator()(const std::byte* start) const {
  ::munmap(const_cast<std::byte*>(start), size_bytes);
}

Result<GgufFile> GgufFile::open(const std::string& path) {
  GgufFile file = TRY(open_single(path));
  const auto n_parts = TRY(file.get_or<std::uint32_t>("split.count", 1));
  if (n_parts > 1) return open_split(std::move(file), n_parts);
  return file;
}

Result<GgufFile> GgufFile::open_single(const std::string& path) {
  return map(TRY(open_for_reading(path)), path);
}

Result<GgufFile> GgufFile::map(UniqueFd fd, const std::string& path) {
  GgufFile file;
  file.path_ = path;
  file.fd_ = std::move(fd);
  file.mapped_ = TRY(FileIdentity::of_descriptor(file.fd_, path));
  file.identity_ = file.mapped_;
  const std::uint64_t size_bytes = file.mapped_.size_bytes;
  if (size_bytes == 0) return fail(Errc::FileCorrupt, fmt::format("{}: is empty", path));
  void* start = ::mmap(nullptr, size_bytes, PROT_READ, MAP_PRIVATE, file.fd_.get(), 0);
  if (start == MAP_FAILED)
    return fail_errno(Errc::SystemError, fmt::format("mmap {} ({} bytes)", path, size_bytes),
                      errno);
  file.mapping_ = {static_cast<const std::byte*>(start), Unmap{size_bytes}};
  file.directory_ = TRY(read_gguf_directory(file.bytes(), path));
  return file;
}

const GgufTensor* GgufFile::find(std::string_view name) const {
  const auto entry = directory_.tensor_index.find(name);
  return entry == directory_.tensor_index.end() ? nullptr : &directory_.tensors[entry->second];
}

Result<const GgufTensor*> GgufFile::tensor(std::string_view name) const {
  if (const GgufTensor* found = find(name)) return found;
  return fail(Errc::MissingWeight,
              fmt::format("{}: has no tensor {}; convert the model again", path(), name));
}

std::span<const std::byte> GgufFile::data(const GgufTensor& tensor) const {
  return part(tensor.part).bytes().subspan(tensor.offset, tensor.size_bytes);
}

Result<void> GgufFile::read(const GgufTensor& tensor, std::uint64_t from,
                            std::span<std::byte> destination) const {
  expects(from + destination.size() <= tensor.size_bytes, "the range lies in the tensor");
  return read_part(tensor.part, tensor.offset + from, destination);
}

Result<void> GgufFile::read_part(std::uint32_t number, std::uint64_t from,
                                 std::span<std::byte> destination) const {
  const GgufFile& file = part(number);
  expects(from + destination.size() <= file.mapped_.size_bytes, "the range lies in the file");
  std::uint64_t done = 0;
  while (done < destination.size()) {
    const ssize_t n = ::pread(file.fd_.get(), destination.data() + done, destination.size() - done,
                              static_cast<off_t>(from + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail_errno(Errc::SystemError, fmt::format("pread {}", file.path_), errno);
    if (n == 0)
      return fail(Errc::FileCorrupt, fmt::format("{}: ends after {} of {} bytes: the file was "
                                                 "truncated after it was opened",
                                                 file.path_, from + done, file.mapped_.size_bytes));
    done += static_cast<std::uint64_t>(n);
  }
  return {};
}

Result<FileIdentity> GgufFile::opened_part_identity() const {
  return FileIdentity::of_descriptor(fd_, path_);
}

Result<void> GgufFile::check_unchanged() const {
  const FileIdentity now = TRY(opened_part_identity());
  if (now.size_bytes != mapped_.size_bytes || now.mtime_ns != mapped_.mtime_ns)
    return fail(Errc::FileCorrupt,
                fmt::format("{}: changed while it was read ({} bytes then, {} now); load "
                            "it again when it is complete",
                            path_, mapped_.size_bytes, now.size_bytes));
  for (const GgufFile& other : other_parts_) TRY(other.check_unchanged());
  return {};
}

/// Best effort. The kernel drops no page that is mapped, so this process unmaps its own pages
/// first; they are read again when they are used.
void GgufFile::release_cache() const {
  ::madvise(const_cast<std::byte*>(mapping_.get()), mapped_.size_bytes, MADV_DONTNEED);
  (void)::posix_fadvise(fd_.get(), 0, 0, POSIX_FADV_DONTNEED);
  for (const GgufFile& other : other_parts_) other.release_cache();
}

bool GgufFile::has(std::string_view key) const {
  return directory_.metadata.contains(key);
}

Result<GgufValue> GgufFile::value(std::string_view key) const {
  const auto entry = directory_.metadata.find(key);
  if (entry != directory_.metadata.end()) return entry->second;
  const std::string similar = nearest_key(directory_, key);
  return fail(Errc::FileCorrupt,
              fmt::format("{}: the metadata has no {}{}; convert the model again", path_, key,
                          similar.empty() ? "" : fmt::format(" (the nearest is {})", similar)));
}

}  // namespace leasehold
