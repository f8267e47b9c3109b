/// The files of adapters that every worker of the simulated machine reads.
///
/// A file is one number: its content, which is never written again elsewhere. So the content of
/// memory says whose adapter it is and which version.
#pragma once

#include <cstring>
#include <map>
#include <string>

#include "common/content_digest.hpp"

namespace leasehold::simulation {

inline constexpr const char* kSharedAdapter = "s";

struct AdapterFile {
  std::uint64_t content = 0;
  std::uint32_t extents = 1;  ///< What it needs in memory.
};

class AdapterDisk {
 public:
  /// Replaces the file. `owner`: empty for a shared adapter.
  void write(const std::string& path, const std::string& owner, std::uint32_t extents) {
    owners_[++last_] = owner;
    files_[path] = {.content = last_, .extents = extents};
  }
  /// Null for a path that was never written.
  const AdapterFile* find(const std::string& path) const {
    const auto found = files_.find(path);
    return found == files_.end() ? nullptr : &found->second;
  }
  /// Precondition: some file has or had the content.
  const std::string& owner_of(std::uint64_t content) const { return owners_.at(content); }

 private:
  std::map<std::string, AdapterFile> files_;
  std::map<std::uint64_t, std::string> owners_;  ///< By content.
  std::uint64_t last_ = 0;
};

inline ContentDigest digest_of(std::uint64_t content) {
  ContentDigest digest;
  std::memcpy(digest.bytes.data(), &content, sizeof(content));
  return digest;
}

inline std::uint64_t content_of(const ContentDigest& digest) {
  std::uint64_t content = 0;
  std::memcpy(&content, digest.bytes.data(), sizeof(content));
  return content;
}

}  // namespace leasehold::simulation
