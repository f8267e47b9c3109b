/// Measures the mean divergence of llama.cpp's predictions and of ours from the same reference,
/// which is our f32 arithmetic on the same file. Both predict the same tokens from the same
/// context.
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
  std::string peer_dir;  ///< Directory of llama-perplexity.
  std::vector<std::string> model_paths;
  std::string text_path;
  std::uint32_t window = 128;  ///< Tokens of a window; its second half is compared.
  std::uint32_t windows = 0;   ///< Most windows to compare; 0: the whole text.
  std::uint32_t threads = 1;
  KvType kv_type = KvType::F16;            ///< KV type of the peer and of our engine.
  KvType reference_kv_type = KvType::F32;  ///< KV type of the reference.
  Arithmetic arithmetic = Arithmetic::Int8;
};

/// Means over the positions of one file, in nats.
struct FileDivergence {
  std::string file;
  std::size_t positions = 0;
  double peer = 0;
  /// Our divergence, with our predictions coded in 16 bits as the peer's are (token_odds.hpp).
  double ours = 0;
  double ours_exact = 0;        ///< Our divergence without coding.
  double difference_error = 0;  ///< Standard error of ours - peer, assuming independent positions.
  std::optional<Error> error;   ///< Why the file could not be compared; then all numbers are 0.
};

struct PeerDivergence {
  std::string version;  ///< Version of the peer.
  std::vector<FileDivergence> files;
};

/// Called before each file, with the number of files before it.
using FilesDone = std::function<void(std::size_t done, std::size_t total)>;

/// Errors: those of PeerPrograms::open and version_of. An error of one file is stored in its row:
/// those of loading, of output_of and of PeerLogits; BadRequest for a window below 4 or beyond the
/// model's context, and for a text of fewer than two windows, which the peer refuses.
Result<PeerDivergence> measure_peer_divergence(const PeerDivergenceConfig& config,
                                               const FilesDone& progress);

// The verdict and the text of what was measured. Pure.

/// Our mean divergence may be at most this many times the peer's on one file, and at most the
/// peer's over all files. If the peer's value is below kCodeFloorNats, the floor replaces it,
/// because the error of the codes would then determine the ratio.
inline constexpr double kMostTimesPeer = 1.1;

/// True if our divergence on the file is within the limit; false for a file that could not be
/// compared.
bool is_within(const FileDivergence& file);

/// Means over the compared files, each with the same weight.
struct MeanDivergence {
  std::size_t files = 0;
  double peer = 0;
  double ours = 0;
};
MeanDivergence mean_of(const PeerDivergence& measured);

/// True if every file, and the mean over all files, is within its limit.
bool passes(const PeerDivergence& measured);

/// Returns a table with one line per file and one for all files, and a description of the
/// comparison.
std::string divergence_text(const PeerDivergenceConfig& config, const PeerDivergence& measured);

}  // namespace leasehold
