#include "worker/adapter/adapter_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ranges>

#include "common/expects.hpp"
#include "common/machine/process.hpp"
#include "common/utf8.hpp"
#include "kernels/model/gguf/gguf_head.hpp"
#include "worker/adapter/adapter_matrix.hpp"
#include "worker/adapter/peft_config.hpp"
#include "worker/adapter/safetensors.hpp"

namespace leasehold {
namespace {

constexpr std::string_view kConfigName = "adapter_config.json";
constexpr std::string_view kMatricesName = "adapter_model.safetensors";
/// The most bytes of a GGUF file before its matrices.
constexpr std::uint64_t kMaxGgufHeadBytes = 1 << 20;
/// What a file may have besides its matrices.
constexpr std::uint64_t kMaxOtherBytes = 16 << 20;

/// The model that an adapter must fit.
struct Expected {
  const ModelConfig* config;
  std::uint32_t max_rank;
};

std::unexpected<Error> refuse(const FileBelow& file, std::string_view why) {
  return fail(Errc::UnsupportedModel, fmt::format("{}: {}", file.path(), why));
}

/// Limits what a hostile file makes the worker read.
Result<void> check_size(const FileBelow& file, const Expected& expected) {
  const std::uint64_t most =
      largest_adapter_bytes(*expected.config, expected.max_rank) + kMaxOtherBytes;
  if (file.size_bytes() <= most) return {};
  return refuse(file, fmt::format("has {} bytes; an adapter of this model with a rank of up to {} "
                                  "(--max-adapter-rank) has {} at most",
                                  file.size_bytes(), expected.max_rank, most));
}

Result<void> check_text(const GgufHead& gguf, const FileBelow& file, std::string_view key,
                        std::string_view wanted) {
  const auto value = TRY(gguf.get_or<std::string>(key, {}));
  if (value == wanted) return {};
  return refuse(file, fmt::format("{} is \"{}\"; this model loads adapters with \"{}\"", key,
                                  printable_excerpt(value), wanted));
}

/// α; 0 means the rank of each matrix.
Result<float> read_alpha(const GgufHead& gguf, const FileBelow& file) {
  const auto alpha = TRY(gguf.get_or<float>("adapter.lora.alpha", 0.0F));
  if (std::isfinite(alpha)) return alpha;
  return fail(Errc::FileCorrupt, fmt::format("{}: adapter.lora.alpha is {}", file.path(), alpha));
}

std::unexpected<Error> refuse_tensor(const FileBelow& file, std::string_view name) {
  return refuse(file, fmt::format("tensor {} changes what this build cannot change; train the "
                                  "adapter on q, k, v, o, gate, up and down of dense layers",
                                  printable_excerpt(name)));
}

Result<std::vector<FoundMatrix>> gguf_matrices(const GgufHead& gguf, const FileBelow& file) {
  std::vector<FoundMatrix> all;
  for (const GgufTensor& tensor : gguf.tensors()) {
    auto found = found_in_gguf(tensor.name);
    if (!found) return refuse_tensor(file, tensor.name);
    found->matrix = {.name = tensor.name,
                     .type = tensor.type,
                     .rows = tensor.rows(),
                     .columns = tensor.columns(),
                     .offset = tensor.offset};
    all.push_back(std::move(*found));
  }
  return all;
}

Result<std::vector<AdapterPair>> read_gguf(FileBelow& file, const Expected& expected) {
  TRY(file.keep_head(kMaxGgufHeadBytes));
  const GgufHead gguf = TRY(GgufHead::read(file.head(), file.size_bytes(), file.path()));
  if (const auto n_files = TRY(gguf.get_or<std::uint32_t>("split.count", 1)); n_files > 1)
    return refuse(file, fmt::format("is one of {} files; merge them into one", n_files));
  TRY(check_text(gguf, file, "general.type", "adapter"));
  TRY(check_text(gguf, file, "adapter.type", "lora"));
  TRY(check_text(gguf, file, "general.architecture", expected.config->architecture));
  if (gguf.has("adapter.alora.invocation_tokens"))
    return refuse(file, "adapter.alora.invocation_tokens is set: it starts at a token");
  const float alpha = TRY(read_alpha(gguf, file));
  auto found = TRY(gguf_matrices(gguf, file));
  auto pairs =
      TRY(pair_matrices(std::move(found), *expected.config, expected.max_rank, false, file.path()));
  for (AdaptedWeight& weight : pairs | std::views::transform(&AdapterPair::weight))
    weight.scale = alpha == 0.0F ? 1.0F : alpha / static_cast<float>(weight.rank);
  return pairs;
}

std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

Result<std::vector<SafetensorsTensor>> read_directory(FileBelow& file) {
  TRY(file.keep_head(kSafetensorsPrefixBytes + kMaxSafetensorsHeaderBytes));
  std::uint64_t header_bytes = 0;
  if (file.size_bytes() >= sizeof header_bytes)
    std::memcpy(&header_bytes, file.head().data(), sizeof header_bytes);
  TRY(check_safetensors_header_size(header_bytes, file.size_bytes(), file.path()));
  const auto header = file.head().subspan(kSafetensorsPrefixBytes, header_bytes);
  return read_safetensors(as_text(header), file.size_bytes(), file.path());
}

Result<FoundMatrix> peft_matrix(const SafetensorsTensor& tensor, const PeftConfig& config,
                                const FileBelow& file) {
  auto found = found_in_peft(tensor.name);
  if (!found) return refuse_tensor(file, tensor.name);
  const bool is_named =
      config.has_target(peft_module(tensor.name)) && config.has_layer(found->layer);
  if (!is_named)
    return fail(Errc::FileCorrupt,
                fmt::format("{}: tensor {} is not among the target_modules and "
                            "layers_to_transform of {}",
                            file.path(), printable_excerpt(tensor.name), kConfigName));
  found->matrix = {.name = tensor.name,
                   .type = tensor.type,
                   .rows = tensor.rows,
                   .columns = tensor.columns,
                   .offset = tensor.offset};
  return *std::move(found);
}

/// Sets the scale that the config has for a weight, and compares the rank.
Result<void> apply_config(AdapterPair& pair, const PeftConfig& config, const FileBelow& file) {
  const std::string_view module = peft_module(pair.source.a.name);
  pair.weight.scale = config.scale_of(module);
  if (config.rank_of(module) == pair.weight.rank) return {};
  return fail(Errc::FileCorrupt,
              fmt::format("{}: tensor {} has rank {}, and {} says {}", file.path(),
                          printable_excerpt(pair.source.a.name), pair.weight.rank, kConfigName,
                          config.rank_of(module)));
}

Result<std::vector<AdapterPair>> read_peft(FileBelow& config_file, FileBelow& file,
                                           const Expected& expected) {
  TRY(config_file.keep_head(config_file.size_bytes()));
  const PeftConfig config = TRY(read_peft_config(as_text(config_file.head()), config_file.path()));
  std::vector<FoundMatrix> found;
  for (const SafetensorsTensor& tensor : TRY(read_directory(file)))
    found.push_back(TRY(peft_matrix(tensor, config, file)));
  auto pairs =
      TRY(pair_matrices(std::move(found), *expected.config, expected.max_rank, true, file.path()));
  for (AdapterPair& pair : pairs) TRY(apply_config(pair, config, file));
  return pairs;
}

/// The file of a folder, opened below the folder.
Result<FileBelow> open_in(const UniqueFd& folder, std::string_view folder_path,
                          std::string_view name) {
  auto fd = open_below(folder.get(), name);
  if (!fd) {
    fd.error().detail = fmt::format("in {}: {}", printable_excerpt(folder_path), fd.error().detail);
    return std::unexpected(std::move(fd).error());
  }
  return FileBelow::adopt(*std::move(fd),
                          fmt::format("{}/{}", printable_excerpt(folder_path), name));
}

}  // namespace

Result<AdapterFile> AdapterFile::open(int directory_fd, std::string_view relative_path,
                                      const ModelConfig& config, std::uint32_t max_rank) {
  const Expected expected{.config = &config, .max_rank = max_rank};
  AdapterFile file;
  UniqueFd fd = TRY(open_below(directory_fd, relative_path));
  const bool is_folder = is_directory(fd);
  if (is_folder) {
    file.files_.push_back(TRY(open_in(fd, relative_path, kConfigName)));
    if (file.files_.front().size_bytes() > kMaxPeftConfigBytes)
      return fail(
          Errc::FileCorrupt,
          fmt::format("{}: has {} bytes; a config has {} at most", file.files_.front().path(),
                      file.files_.front().size_bytes(), kMaxPeftConfigBytes));
    file.files_.push_back(TRY(open_in(fd, relative_path, kMatricesName)));
  } else {
    file.files_.push_back(TRY(FileBelow::adopt(std::move(fd), printable_excerpt(relative_path))));
  }
  FileBelow& matrices = file.files_.back();
  TRY(check_size(matrices, expected));
  const auto pairs = TRY(is_folder ? read_peft(file.files_.front(), matrices, expected)
                                   : read_gguf(matrices, expected));
  for (const AdapterPair& pair : pairs) {
    file.weights_.push_back(pair.weight);
    file.sources_.push_back(pair.source);
  }
  FilesDigest digest = TRY(FilesDigest::start(file.files_));
  file.digest_ = TRY(digest.finish(file.files_));
  return file;
}

/// In the order of the file, so that one pass both copies and hashes it.
Result<AdapterLayout> AdapterFile::layout(std::uint64_t extent_bytes) const {
  AdapterLayout layout = TRY(make_adapter_layout(weights_, extent_bytes));
  std::ranges::sort(layout.pieces, {},
                    [this](const AdapterPiece& piece) { return source_of(piece).offset; });
  return layout;
}

Result<void> AdapterFile::read(const AdapterPiece& piece, std::uint64_t from,
                               std::span<std::byte> into) {
  expects(from + into.size() <= piece.size_bytes, "the range lies in the matrix");
  const std::size_t number = 2 * std::size_t{piece.weight} + (piece.half == AdapterHalf::B);
  if (number != matrix_number_) {
    matrix_number_ = SIZE_MAX;
    matrix_ = TRY(read_matrix(piece));
    matrix_number_ = number;
  }
  std::ranges::copy(std::span(matrix_).subspan(from, into.size()), into.begin());
  return {};
}

Result<std::vector<std::byte>> AdapterFile::read_matrix(const AdapterPiece& piece) {
  const AdaptedWeight& weight = weights_[piece.weight];
  const FileBelow& file = files_.back();
  const FileMatrix& matrix = source_of(piece);
  std::vector<std::byte> bytes(matrix.size_bytes());
  TRY(file.read(matrix.offset, bytes));
  TRY(note_read(matrix.offset, bytes));
  give_way();
  bytes = widened(matrix, std::move(bytes), weight.type);
  if (!is_finite(weight.type, bytes))
    return fail(Errc::FileCorrupt,
                fmt::format("{}: tensor {} has a value that is infinite or not a number",
                            file.path(), printable_excerpt(matrix.name)));
  give_way();
  if (piece.half == AdapterHalf::A) return bytes;
  return transposed(bytes, matrix.rows, matrix.columns, block_shape(weight.type).size_bytes,
                    sources_[piece.weight].permuted_head);
}

/// A matrix before those that were read begins a new pass over the file.
Result<void> AdapterFile::note_read(std::uint64_t offset, std::span<const std::byte> bytes) {
  if (!read_digest_ || offset < read_digest_->position())
    read_digest_ = TRY(FilesDigest::start(files_));
  return read_digest_->add(files_, offset, bytes);
}

Result<void> AdapterFile::check_read() {
  if (!read_digest_) read_digest_ = TRY(FilesDigest::start(files_));
  const ContentDigest read = TRY(read_digest_->finish(files_));
  read_digest_.reset();
  if (read == digest_) return {};
  return fail(Errc::FileCorrupt,
              fmt::format("{}: changed while it was read: its SHA-256 was {} and is {}; load the "
                          "adapter again when the file is complete",
                          files_.back().path(), digest_.hex(), read.hex()));
}

}  // namespace leasehold
