/// Reads an adapter's file in slices, on a thread that may block.
///
/// Lifetime: owns the file. Threads: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "worker/adapter/adapter_actions.hpp"
#include "worker/adapter/adapter_file.hpp"

namespace leasehold {

/// Bytes of matrices, and their places in the extents of a lease.
struct AdapterSlice {
  struct Part {
    std::uint32_t extent = 0;  ///< Index among the lease's extents.
    std::uint64_t offset = 0;  ///< Byte in the extent.
    std::size_t begin = 0;     ///< Byte in `bytes`.
    std::size_t size_bytes = 0;
  };
  std::vector<std::byte> bytes;
  std::vector<Part> parts;
  bool is_last = false;
};

/// Where a worker's adapters are, and which ones it takes.
struct AdapterDirectory {
  int fd = -1;  ///< Open as long as files are read.
  std::uint32_t max_rank = kDefaultMaxAdapterRank;
  std::uint64_t extent_bytes = 0;  ///< Of the broker's pool.
};

class AdapterReader {
 public:
  static constexpr std::size_t kSliceBytes = 1 << 20;

  /// Errors: those of AdapterFile::open, with MissingWeight for a file that is gone;
  /// PoolExhausted for a matrix that is larger than an extent.
  static Result<std::shared_ptr<AdapterReader>> open(const AdapterDirectory& directory,
                                                     const std::string& path,
                                                     const ModelConfig& model);

  AdapterContent content() const;
  const AdapterLayout& layout() const { return layout_; }
  std::span<const AdaptedWeight> weights() const { return file_.weights(); }

  /// The next slice of at most kSliceBytes; the last one is given once the bytes are known to be
  /// those of the digest. Errors: those of AdapterFile::read and check_read. Precondition:
  /// !has_ended().
  Result<AdapterSlice> next();
  /// True after the last slice, or an error.
  bool has_ended() const { return has_ended_; }

 private:
  AdapterReader(AdapterFile file, AdapterLayout layout, std::uint64_t extent_bytes)
      : file_(std::move(file)), layout_(std::move(layout)), extent_bytes_(extent_bytes) {}
  Result<AdapterSlice> read_slice();
  Result<void> read_part(AdapterSlice& slice);

  AdapterFile file_;
  AdapterLayout layout_;
  std::uint64_t extent_bytes_;
  std::size_t piece_ = 0;   // index of the piece that is read next
  std::uint64_t from_ = 0;  // its first byte that is not read
  bool has_ended_ = false;
};

}  // namespace leasehold
