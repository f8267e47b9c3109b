#include "tests/checks/perplexity/peer_divergence.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "kernels/model/kv_type.hpp"
#include "tests/checks/perplexity/token_odds.hpp"
#include "tools/cli/table.hpp"

namespace leasehold {
namespace {

std::string nats(double value) {
  return fmt::format("{:.3e}", value);
}

/// Returns "-" if both means are below the floor, because their ratio is then meaningless.
std::string ratio(double ours, double peer) {
  if (std::max(ours, peer) < kCodeFloorNats || peer <= 0) return "-";
  return fmt::format("{:.3f}", ours / peer);
}

/// The ratio with its standard error over positions.
std::string ratio(const FileDivergence& file) {
  const std::string text = ratio(file.ours, file.peer);
  return text == "-" ? text : fmt::format("{} ± {:.3f}", text, file.difference_error / file.peer);
}

std::vector<std::string> row_of(const FileDivergence& file) {
  if (file.error) return {file.file, "-", "-", "-", "-", "-", "not compared"};
  return {file.file,
          std::to_string(file.positions),
          nats(file.peer),
          nats(file.ours),
          nats(file.ours_exact),
          ratio(file),
          is_within(file) ? "within" : "BEYOND"};
}

std::string errors_of(const PeerDivergence& measured) {
  std::string text;
  for (const FileDivergence& file : measured.files)
    if (file.error) text += fmt::format("{}: {}\n", file.file, file.error->detail);
  return text;
}

}  // namespace

bool is_within(const FileDivergence& file) {
  return !file.error && file.ours <= kMostTimesPeer * std::max(file.peer, kCodeFloorNats);
}

MeanDivergence mean_of(const PeerDivergence& measured) {
  MeanDivergence mean;
  for (const FileDivergence& file : measured.files) {
    if (file.error) continue;
    ++mean.files;
    mean.peer += file.peer;
    mean.ours += file.ours;
  }
  const auto n = static_cast<double>(std::max<std::size_t>(1, mean.files));
  mean.peer /= n;
  mean.ours /= n;
  return mean;
}

bool passes(const PeerDivergence& measured) {
  const MeanDivergence mean = mean_of(measured);
  return mean.files > 0 && std::ranges::all_of(measured.files, is_within) &&
         mean.ours <= std::max(mean.peer, kCodeFloorNats);
}

std::string divergence_text(const PeerDivergenceConfig& config, const PeerDivergence& measured) {
  cli::Table table{.columns = {{"FILE"},
                               {"POSITIONS", true},
                               {"PEER", true},
                               {"OURS", true},
                               {"OURS EXACT", true},
                               {"RATIO", true},
                               {"VERDICT"}},
                   .rows = {}};
  for (const FileDivergence& file : measured.files) table.rows.push_back(row_of(file));
  const MeanDivergence mean = mean_of(measured);
  const bool is_mean_within = mean.ours <= std::max(mean.peer, kCodeFloorNats);
  table.rows.push_back({fmt::format("mean of {} files", mean.files), "", nats(mean.peer),
                        nats(mean.ours), "", ratio(mean.ours, mean.peer),
                        is_mean_within ? "within" : "BEYOND"});
  return cli::render(table) + errors_of(measured) +
         fmt::format(
             "Mean KL in nats from our f32 arithmetic with {} keys and values. Peer: llama.cpp {}; "
             "ours: {}; both with {} keys and values.\nWindows of {} tokens, whose second halves "
             "are compared. PEER and OURS pass through the peer's 16-bit codes; below {:.1e} nats "
             "the codes decide about the ratio. ± is one standard error of the ratio.\n",
             name(config.reference_kv_type), measured.version,
             config.arithmetic == Arithmetic::F32 ? "f32" : "int8", name(config.kv_type),
             config.window, kCodeFloorNats);
}

}  // namespace leasehold
