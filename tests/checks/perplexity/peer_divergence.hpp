/// Mean divergence of llama.cpp's predictions and of ours from the same reference: our arithmetic
/// in f32 on the same file. Both predict the same tokens from the same context.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/result.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold {

struct PeerDivergenceConfig {
  std::string peer_dir;  ///< Has llama-perplexity.
  std::vector<std::string> model_paths;
  std::string text_path;
  std::uint32_t window = 128;  ///< Tokens; the second half of each is compared.
  std::uint32_t windows = 0;   ///< At most; 0: the whole text.
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;            ///< Of the peer and of ours.
  KvType reference_kv_type = KvType::F32;  ///< Of the reference.
  Arithmetic arithmetic = Arithmetic::Int8;
};

/// Means over the positions of one file, in nats.
struct FileDivergence {
  std::string file;
  std::size_t positions = 0;
  double peer = 0;
  double ours = 0;              ///< With the peer's 16-bit codes (coded_odds.hpp).
  double ours_exact = 0;        ///< Of our logits themselves.
  double difference_error = 0;  ///< Standard error of ours - peer, for independent positions.
  std::optional<Error> error;   ///< Why the file could not be compared; then all others are 0.
};

struct PeerDivergence {
  std::string version;  ///< The peer's.
  std::vector<FileDivergence> files;
};

/// Called before each file, with the number of files before it.
using FilesDone = std::function<void(std::size_t done, std::size_t total)>;

/// Errors: those of PeerPrograms::open and version_of. The error of one file is in its row: those
/// of loading, of output_of and of PeerLogits; BadRequest for a window below 4 or beyond the
/// model's context, and for a text of fewer than two windows, which the peer refuses.
Result<PeerDivergence> measure_peer_divergence(const PeerDivergenceConfig& config,
                                               const FilesDone& progress);

}  // namespace leasehold
