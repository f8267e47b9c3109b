#include "tests/checks/soak/models/model_file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <span>
#include <system_error>

#include "common/machine/replace_file.hpp"

namespace leasehold::soak {
namespace {

namespace fs = std::filesystem;

/// The bit that is changed in every second byte. It is a bit of the mantissa, so finite values stay
/// finite, and texts change.
constexpr std::byte kChangedBit{0x04};

/// The second half of a model file holds values of tensors only.
std::size_t half_of(const std::vector<std::byte>& bytes) {
  return bytes.size() / 2;
}

/// Returns `original` with other values in its second half.
std::vector<std::byte> changed_copy(const std::vector<std::byte>& original) {
  std::vector<std::byte> changed = original;
  for (std::size_t i = half_of(original); i < changed.size(); i += 2) changed[i] ^= kChangedBit;
  return changed;
}

Result<void> failed(const std::string& what, const std::string& path) {
  return fail(Errc::SystemError, fmt::format("{} {} failed", what, path));
}

Result<void> write_at(std::fstream file, std::size_t from, std::span<const std::byte> bytes,
                      const std::string& path) {
  file.seekp(static_cast<std::streamoff>(from));
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? Result<void>{} : failed("writing", path);
}

Result<void> write_whole(const std::string& path, const std::vector<std::byte>& bytes) {
  return replace_file(path, {reinterpret_cast<const char*>(bytes.data()), bytes.size()},
                      {.survives_power_cut = false});
}

}  // namespace

Result<ModelFile> ModelFile::create(std::string path, const std::vector<std::byte>& original) {
  TRY(write_whole(path, original));
  return ModelFile(std::move(path), original);
}

Result<void> ModelFile::copy() {
  TRY(write_whole(path_, *original_));
  is_whole_ = true;
  return {};
}

Result<void> ModelFile::replace() {
  is_whole_ = false;
  return write_whole(path_, changed_copy(*original_));
}

Result<void> ModelFile::rewrite() {
  if (!fs::exists(path_)) return replace();
  is_whole_ = false;
  const std::vector<std::byte> changed = changed_copy(*original_);
  const std::size_t half = half_of(changed);
  return write_at(std::fstream(path_, std::ios::in | std::ios::out | std::ios::binary), half,
                  std::span(changed).subspan(half), path_);
}

Result<void> ModelFile::truncate() {
  if (!fs::exists(path_)) return {};
  is_whole_ = false;
  std::error_code error;
  fs::resize_file(path_, half_of(*original_), error);
  return error ? failed("truncating", path_) : Result<void>{};
}

Result<void> ModelFile::remove() {
  is_whole_ = false;
  std::error_code error;
  fs::remove(path_, error);
  return error ? failed("removing", path_) : Result<void>{};
}

Result<std::vector<std::byte>> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file) return fail(Errc::FileNotFound, fmt::format("{} cannot be opened", path));
  std::vector<std::byte> bytes(static_cast<std::size_t>(file.tellg()));
  file.seekg(0);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!file) return fail(Errc::SystemError, fmt::format("{} cannot be read", path));
  return bytes;
}

}  // namespace leasehold::soak
