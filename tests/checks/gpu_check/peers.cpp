// The stages peers and llama: PyTorch's kernels and llama.cpp's programs on the same card, and the
// ratio to the speeds of the stage speed.
#include <fmt/format.h>

#include <cstdio>

#include "tests/checks/gpu_check/bench_cases.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace leasehold::gpu_check {
namespace {

/// Our speed that is compared with a kind of PyTorch's matmuls.
struct PeerKind {
  std::string_view kind;
  std::string_view model;  ///< The title of our model.
  std::string_view arithmetic;
};
constexpr PeerKind kPeerKinds[] = {
    {"bf16", "7b F16", "f16"}, {"int8", "7b Q8_0", "int8"}, {"int4", "7b Q4_K_M", "int8"}};

/// Steps of our engine.
struct OurSteps {
  std::string_view model;
  std::string_view arithmetic;
  int rows = 0;
};

/// The numbers of the stage speed, empty if it did not run.
Json speed_in(const Settings& settings) {
  const Json part = Json::parse(text_of_file(settings.out_dir + "/speed.json"), nullptr, false);
  return part.is_object() ? part.value("numbers", Json::object()) : Json::object();
}

/// Our tokens/s, or nullopt if they were not measured. Early steps come first.
std::optional<double> our_speed(const Json& speed, const OurSteps& steps) {
  const auto is_same = [&](const Json& row, const char* rows) {
    return row.value("model", "") == steps.model &&
           row.value("arithmetic", "") == steps.arithmetic && row.value(rows, 0) == steps.rows;
  };
  for (const Json& row : speed.value("decode", Json::array()))
    if (is_same(row, "batch") && row.value("mode", "") == "gated graph")
      return row.value("tokens_per_s", 0.0);
  for (const Json& row : speed.value("prefill", Json::array()))
    if (is_same(row, "rows")) return row.value("rows", 0) / row.value("seconds", 1.0);
  return std::nullopt;
}

std::optional<double> our_speed_beside(const Json& speed, const Json& peer) {
  for (const PeerKind& one : kPeerKinds)
    if (peer.value("kind", "") == one.kind)
      return our_speed(speed, {one.model, one.arithmetic, peer.value("rows", 0)});
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

/// A figure of llama.py, and our steps beside it.
struct LlamaFigure {
  const char* name;
  const char* what;
  int rows;
  int context;  ///< Positions of a sequence before its decoded tokens.
};
constexpr LlamaFigure kLlamaFigures[] = {{"batch_1", "1 row", 1, 512},
                                         {"batch_8", "8 rows", 8, 512},
                                         {"batch_32", "32 rows", 32, 512},
                                         {"prefill", "prompt of 512", 512, 0},
                                         {"decode", "1 row from an empty context", 1, 0}};

void report_llama(StageReport& report, const Json& speed, const std::string& model,
                  const Json& tokens_per_s) {
  for (const LlamaFigure& figure : kLlamaFigures) {
    const double theirs = tokens_per_s.value(figure.name, 0.0);
    const std::string what = fmt::format("llama.cpp, {}, {}", model, figure.what);
    if (theirs <= 0) {
      report.unknown(what, "llama.py wrote no figure");
      continue;
    }
    Json numbers{{"model", model},
                 {"rows", figure.rows},
                 {"context", figure.context},
                 {"tokens_per_s", theirs}};
    std::string measured = fmt::format("{:.0f} tokens/s", theirs);
    const bool is_decode_alone = figure.rows == 1 && figure.context == 0;  // we measure none
    const auto ours =
        is_decode_alone ? std::nullopt : our_speed(speed, {model, "int8", figure.rows});
    if (ours) {
      numbers["ratio"] = *ours / theirs;
      measured += fmt::format("; ours / theirs {:.2f}", *ours / theirs);
    }
    report.add_row("llama", std::move(numbers), judged(what, measured, std::nullopt));
  }
}

/// What llama.py wrote about one file. Errors: SystemError with its message.
Result<Json> time_llama(const Settings& settings, const BenchCase& one) {
  const std::string out = settings.out_dir + "/llama-figures.json";
  const std::string log = settings.out_dir + "/llama-programs.log";
  for (const std::string& old : {out, log}) (void)std::remove(old.c_str());
  constexpr int kSecondsEach = 55;
  const int status =
      TRY(run_to_end({.argv = {"/usr/bin/env", "python3", "-B", settings.bin_dir + "/llama.py",
                               "--peer", settings.peer_dir, "--model", one.file.path, "--out", out,
                               "--seconds", std::to_string(kSecondsEach)},
                      .log_path = log,
                      .share_process_group = true}));
  Json made = Json::parse(text_of_file(out), nullptr, false);
  if (status == 0 && made.is_object()) return made;
  return fail(Errc::SystemError,
              fmt::format("exit code {}: {}", status, text_of_file(log).substr(0, 600)));
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
  const Json speed = speed_in(settings);
  for (const Json& peer : made.value("peers", Json::array()))
    report_peer(report, peer, our_speed_beside(speed, peer));
  return {};
}

Result<void> check_llama(const Settings& settings, StageReport& report) {
  if (settings.peer_dir.empty()) {
    report.unknown("llama.cpp", "no programs; name their folder with --peer");
    return {};
  }
  const Json speed = speed_in(settings);
  for (const Mix mix : {Mix::Q4KM, Mix::Q8}) {
    const BenchCase one = TRY(first_case(settings, mix));
    const Result<Json> made = time_llama(settings, one);
    (void)std::remove(one.file.path.c_str());
    if (!made) {
      report.unknown("llama.cpp, " + one.title, made.error().detail);
      continue;
    }
    if (!report.numbers().contains("version")) {
      report.numbers()["version"] = made->value("version", "");
      report.measured("llama.cpp, build", made->value("version", ""));
    }
    report_llama(report, speed, one.title, made->value("tokens_per_s", Json::object()));
  }
  return {};
}

}  // namespace leasehold::gpu_check
