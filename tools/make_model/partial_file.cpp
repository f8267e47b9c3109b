#include "tools/make_model/partial_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <utility>

#include "common/machine/replace_file.hpp"

namespace leasehold::make_model {
namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

std::unexpected<Error> failed(const char* operation, const std::string& path, int error_number) {
  return fail_file(std::string(operation) + " " + path, error_number);
}

}  // namespace

PartialFile::PartialFile(std::string path, UniqueFd fd)
    : path_(std::move(path)), partial_path_(path_ + ".partial"), fd_(std::move(fd)) {
  buffer_.reserve(kBufferBytes);
}

PartialFile::~PartialFile() {
  if (fd_) ::unlink(partial_path_.c_str());
}

Result<PartialFile> PartialFile::create(std::string path, std::uint64_t size_bytes) {
  std::error_code ignored;
  const auto target = std::filesystem::status(path, ignored);
  if (std::filesystem::exists(target) && !std::filesystem::is_regular_file(target)) {
    // The final rename would replace a device with a file.
    return fail(Errc::BadRequest, path + " exists and is not a regular file; choose another path");
  }
  const std::string partial = path + ".partial";
  UniqueFd fd(::open(partial.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd) return failed("opening", partial, errno);
  PartialFile file(std::move(path), std::move(fd));
  TRY(file.reserve(size_bytes));
  return file;
}

Result<void> PartialFile::reserve(std::uint64_t size_bytes) {
  const int status = ::fallocate(fd_.get(), 0, 0, static_cast<off_t>(size_bytes));
  // Some file systems cannot reserve space; a full disk is then an error of a later write.
  if (status == 0 || errno == EOPNOTSUPP || errno == ENOSYS) return {};
  const std::string operation = "reserving " + std::to_string(size_bytes) + " bytes for";
  return failed(operation.c_str(), partial_path_, errno);
}

Result<void> PartialFile::append(std::span<const std::byte> bytes) {
  size_bytes_ += bytes.size();
  buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  if (buffer_.size() < kBufferBytes) return {};
  return flush();
}

Result<void> PartialFile::flush() {
  const std::string_view bytes(reinterpret_cast<const char*>(buffer_.data()), buffer_.size());
  TRY(write_all(fd_.get(), bytes, partial_path_));
  buffer_.clear();
  return {};
}

Result<void> PartialFile::finish() {
  TRY(flush());
  TRY(sync_and_rename());
  fd_.reset();
  return sync_directory_of(path_);  // makes the rename durable
}

Result<void> PartialFile::sync_and_rename() {
  if (::fsync(fd_.get()) != 0) return failed("syncing", partial_path_, errno);
  if (std::rename(partial_path_.c_str(), path_.c_str()) != 0) {
    return failed("renaming to", path_, errno);
  }
  return {};
}

}  // namespace leasehold::make_model
