#include "worker/adapter/adapter_reader.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include "common/machine/process.hpp"

namespace leasehold {

Result<std::shared_ptr<AdapterReader>> AdapterReader::open(const AdapterDirectory& directory,
                                                           const std::string& path,
                                                           const ModelConfig& model) {
  Result<AdapterFile> file = AdapterFile::open(directory.fd, path, model, directory.max_rank);
  if (!file && file.error().code == Errc::FileNotFound)
    return fail(Errc::MissingWeight, file.error().detail);
  if (!file) return std::unexpected(std::move(file).error());
  AdapterLayout layout = TRY(file->layout(directory.extent_bytes));
  return std::shared_ptr<AdapterReader>(
      new AdapterReader(*std::move(file), std::move(layout), directory.extent_bytes));
}

AdapterContent AdapterReader::content() const {
  return {.digest = file_.digest(),
          .size_bytes = file_.size_bytes(),
          .memory_bytes = layout_.n_extents * extent_bytes_};
}

Result<AdapterSlice> AdapterReader::next() {
  Result<AdapterSlice> slice = read_slice();
  has_ended_ = !slice || slice->is_last;
  return slice;
}

Result<AdapterSlice> AdapterReader::read_slice() {
  AdapterSlice slice;
  slice.bytes.reserve(kSliceBytes);
  while (piece_ < layout_.pieces.size() && slice.bytes.size() < kSliceBytes) {
    TRY(read_part(slice));
    give_way();
  }
  slice.is_last = piece_ == layout_.pieces.size();
  if (slice.is_last) TRY(file_.check_read());
  return slice;
}

/// Appends the rest of a piece, or as much of it as the slice has room for.
Result<void> AdapterReader::read_part(AdapterSlice& slice) {
  const AdapterPiece& piece = layout_.pieces[piece_];
  const std::size_t begin = slice.bytes.size();
  const std::size_t size_bytes =
      std::min<std::uint64_t>(piece.size_bytes - from_, kSliceBytes - begin);
  slice.bytes.resize(begin + size_bytes);
  TRY(file_.read(piece, from_, std::span(slice.bytes).subspan(begin)));
  slice.parts.push_back({.extent = piece.extent,
                         .offset = piece.offset + from_,
                         .begin = begin,
                         .size_bytes = size_bytes});
  from_ += size_bytes;
  if (from_ == piece.size_bytes) {
    ++piece_;
    from_ = 0;
  }
  return {};
}

}  // namespace leasehold
