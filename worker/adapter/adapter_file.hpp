/// A LoRA adapter on disk, checked against the model that it is for: a GGUF file, or a folder in
/// the form of PEFT with adapter_config.json and adapter_model.safetensors.
///
/// `open` checks everything but the values. `read` gives matrices in the form that kernels read and
/// checks that their values are finite.
///
/// Lifetime: owns its descriptors; a deleted file stays readable. It can be moved, not copied.
/// Threads: one at a time.
/// Errors of `open`:
///   BadRequest         a path that leaves the directory or passes a link
///   FileNotFound, PermissionDenied, SystemError   the file cannot be opened or read
///   MissingWeight      one matrix of a pair is missing, or the file has none at all
///   UnsupportedModel   another architecture, tensor, width, type, rank or method; the error names
///                      the tensor or key
///   FileCorrupt        the bytes break the format or contradict each other
/// Source: the GGUF specification and convert_lora_to_gguf of llama.cpp for its keys; PEFT's
/// LoraConfig; the format of safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/content_digest.hpp"
#include "common/result.hpp"
#include "kernels/model/config.hpp"
#include "worker/adapter/adapter_layout.hpp"
#include "worker/adapter/adapter_source.hpp"
#include "worker/adapter/file_below.hpp"
#include "worker/adapter/files_digest.hpp"

namespace leasehold {

inline constexpr std::uint32_t kDefaultMaxAdapterRank = 64;

class AdapterFile {
 public:
  /// Opens `relative_path` below the directory and reads the whole file once, for its digest.
  static Result<AdapterFile> open(int directory_fd, std::string_view relative_path,
                                  const ModelConfig& config,
                                  std::uint32_t max_rank = kDefaultMaxAdapterRank);

  /// The SHA-256 of the file; of a folder, that of both files, each preceded by its length as 8
  /// bytes, little-endian.
  const ContentDigest& digest() const { return digest_; }
  /// In the order of layers and targets; not empty.
  std::span<const AdaptedWeight> weights() const { return weights_; }
  /// The memory of all matrices, without padding.
  std::uint64_t size_bytes() const { return leasehold::size_bytes(weights_); }
  /// See make_adapter_layout. The pieces are in the order of the file.
  Result<AdapterLayout> layout(std::uint64_t extent_bytes) const;

  /// Fills `into` with the bytes of a matrix from byte `from`; the matrix has enough bytes. A whole
  /// matrix is read and kept when its first slice is asked for, so slices of one matrix are best
  /// read in sequence. Errors: FileCorrupt for a value that is not finite, naming the tensor, and
  /// for a file that became shorter; SystemError.
  Result<void> read(const AdapterPiece& piece, std::uint64_t from, std::span<std::byte> into);

  /// Checks that the bytes that were read are those of `digest`, after all matrices were read in
  /// the order of the file. Errors: FileCorrupt if a file was written meanwhile; what was read is
  /// invalid then. SystemError.
  Result<void> check_read();

 private:
  AdapterFile() = default;
  const FileMatrix& source_of(const AdapterPiece& piece) const {
    const AdapterSource& source = sources_[piece.weight];
    return piece.half == AdapterHalf::A ? source.a : source.b;
  }
  Result<std::vector<std::byte>> read_matrix(const AdapterPiece& piece);
  Result<void> note_read(std::uint64_t offset, std::span<const std::byte> bytes);

  std::vector<FileBelow> files_;  // in the order of the digest; matrices are in the last one
  ContentDigest digest_;
  std::vector<AdaptedWeight> weights_;
  std::vector<AdapterSource> sources_;  // [n_weights]
  std::vector<std::byte> matrix_;       // the last one that was read
  std::size_t matrix_number_ = SIZE_MAX;
  std::optional<FilesDigest> read_digest_;  // of the matrices that were read in this pass
};

}  // namespace leasehold
