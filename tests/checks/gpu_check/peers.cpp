// The stage peers: PyTorch's kernels on the same card, and the ratio to the speeds of the stage
// speed.
#include <fmt/format.h>

#include <cstdio>

#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

/// Our speed that is compared with a kind of PyTorch's matmuls.
struct PeerKind {
  std::string_view kind;
  std::string_view format;  ///< Ends the title of our model.
  std::string_view arithmetic;
};
constexpr PeerKind kPeerKinds[] = {
    {"bf16", "F16", "f16"}, {"int8", "Q8_0", "int8"}, {"int4", "Q4_K_M", "int8"}};

/// Our tokens/s of that kind with as many rows, or nullopt if they were not measured.
std::optional<double> our_speed(const Json& speed, const Json& peer) {
  const auto is_same = [&](const Json& row, const char* rows) {
    for (const PeerKind& one : kPeerKinds)
      if (peer.value("kind", "") == one.kind)
        return row.value("model", "").starts_with("7b ") &&
               row.value("model", "").ends_with(one.format) &&
               row.value("arithmetic", "") == one.arithmetic &&
               row.value(rows, 0) == peer.value("rows", 0);
    return false;
  };
  for (const Json& row : speed.value("decode", Json::array()))
    if (is_same(row, "batch") && row.value("mode", "") == "gated graph")
      return row.value("tokens_per_s", 0.0);
  for (const Json& row : speed.value("prefill", Json::array()))
    if (is_same(row, "rows")) return row.value("rows", 0) / row.value("seconds", 1.0);
  return std::nullopt;
}

void report_peer(StageReport& report, const Json& peer, const std::optional<double>& ours) {
  const int rows = peer.value("rows", 0);
  const std::string what = fmt::format("PyTorch in {}, {} rows", peer.value("kind", ""), rows);
  if (peer.contains("missing")) return report.unknown(what, peer.value("missing", ""));
  const double seconds = peer.value("seconds", 0.0);
  if (seconds <= 0) return report.unknown(what, "its time is missing");
  Json numbers = peer;
  numbers["tokens_per_s"] = rows / seconds;
  std::string measured = fmt::format("{:.0f} tokens/s, {:.2f} TB/s, {:.0f} TFLOP/s", rows / seconds,
                                     peer.value("bytes", 0.0) / seconds / 1e12,
                                     peer.value("flop", 0.0) / seconds / 1e12);
  if (ours) {
    numbers["ratio"] = *ours * seconds / rows;
    measured += fmt::format("; ours / theirs {:.2f}", *ours * seconds / rows);
  }
  report.add_row("peers", std::move(numbers), judged(what, measured, std::nullopt));
}

}  // namespace

Result<void> check_peers(const Settings& settings, StageReport& report) {
  const std::string out = settings.out_dir + "/pytorch.json";
  const std::string log = settings.out_dir + "/pytorch.log";
  for (const std::string& old : {out, log}) (void)std::remove(old.c_str());
  const int status = TRY(
      run_to_end({.argv = {"/usr/bin/env", "python3", settings.bin_dir + "/peers.py", "--out", out},
                  .log_path = log,
                  .share_process_group = true}));
  const Json made = Json::parse(text_of_file(out), nullptr, false);
  if (status != 0 || !made.is_object()) {
    report.unknown("PyTorch's kernels",
                   fmt::format("exit code {}: {}", status, text_of_file(log).substr(0, 300)));
    return {};
  }
  report.numbers()["torch"] = made.value("torch", "");
  const Json part = Json::parse(text_of_file(settings.out_dir + "/speed.json"), nullptr, false);
  const Json speed = part.is_object() ? part.value("numbers", Json::object()) : Json::object();
  for (const Json& peer : made.value("peers", Json::array()))
    report_peer(report, peer, our_speed(speed, peer));
  return {};
}

}  // namespace leasehold::gpu_check
