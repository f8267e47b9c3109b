/// A made model and adapters for it, as files of a temporary directory.
#pragma once

#include <fcntl.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/machine/unique_fd.hpp"
#include "kernels/model/config.hpp"
#include "tests/support/temporary_directory.hpp"
#include "tools/make_model/adapter.hpp"
#include "tools/make_model/write_model.hpp"
#include "worker/adapter/adapter_file.hpp"

namespace leasehold::testing {

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  return bytes.str();
}

/// Writes a new file. Some file systems store a file that was emptied and written at once, which
/// takes milliseconds.
inline void write_file(const std::string& path, std::string_view bytes) {
  std::filesystem::remove(path);
  std::ofstream(path, std::ios::binary) << bytes;
}

/// Widths of 32 and more, so that Q8_0 fits every matrix A; heads of 8 rows.
inline make_model::ModelRequest small_model(std::string_view architecture) {
  return {.architecture = architecture,
          .shape = {.layers = 2,
                    .embd = 32,
                    .heads = 4,
                    .kv_heads = 2,
                    .ffn = 64,
                    .vocab = 259,
                    .context = 64,
                    .tied = true},
          .seed = 3};
}

/// Other ranks for each target; one is a whole block of Q8_0.
inline constexpr make_model::TargetRanks kMixedRanks{4, 3, 8, 2, 32, 1, 5};

/// The directory of adapters of one model.
class AdapterFolder {
 public:
  explicit AdapterFolder(std::string_view architecture = "llama",
                         make_model::ModelRequest model = {})
      : model_(model.shape.layers > 0 ? model : small_model(architecture)),
        config_(read_model(model_)),
        fd_(::open(folder_.path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {}

  const ModelConfig& config() const { return config_; }
  const make_model::ModelRequest& model() const { return model_; }
  std::string path(const std::string& name) const { return folder_.file(name); }

  void make(const std::string& name, TensorType type, make_model::AdapterForm form,
            const make_model::TargetRanks& ranks = kMixedRanks) const {
    REQUIRE(make_model::write_adapter({.model = model_, .ranks = ranks, .type = type, .form = form},
                                      path(name)));
  }
  void write(const std::string& name, std::string_view bytes) const {
    write_file(path(name), bytes);
  }

  Result<AdapterFile> open(std::string_view name,
                           std::uint32_t max_rank = kDefaultMaxAdapterRank) const {
    return AdapterFile::open(fd_.get(), name, config_, max_rank);
  }
  /// The error of `open`.
  Error refusal(std::string_view name, std::uint32_t max_rank = kDefaultMaxAdapterRank) const {
    const auto file = open(name, max_rank);
    REQUIRE_FALSE(file);
    return file.error();
  }

 private:
  ModelConfig read_model(const make_model::ModelRequest& model) const {
    const std::string path = folder_.file("model.gguf");
    REQUIRE(make_model::write_model(model, path, [](auto, auto) {}));
    return read_config(GgufFile::open(path).value()).value();
  }

  TemporaryDirectory folder_ = TemporaryDirectory::create("adapters").value();
  make_model::ModelRequest model_;
  ModelConfig config_;
  UniqueFd fd_;
};

/// All bytes of the pieces, in slices of `slice` bytes.
inline Result<std::vector<std::vector<std::byte>>> read_all(AdapterFile& file,
                                                            std::size_t slice = 1 << 20) {
  const AdapterLayout layout = TRY(file.layout(1 << 20));
  std::vector<std::vector<std::byte>> all;
  for (const AdapterPiece& piece : layout.pieces) {
    std::vector<std::byte>& bytes = all.emplace_back(piece.size_bytes);
    for (std::size_t from = 0; from < bytes.size(); from += slice)
      TRY(file.read(piece, from,
                    std::span(bytes).subspan(from, std::min(slice, bytes.size() - from))));
  }
  TRY(file.check_read());
  return all;
}

}  // namespace leasehold::testing
