/// leasehold-bench: measures revocation on real processes, and the speed of the engine.
///
/// Exit codes: 0 done (and within the limits), 1 a limit is exceeded or was not measured, 2 wrong
/// usage, otherwise the code of the error (common/errc.hpp).
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <map>

#include "common/command_line.hpp"
#include "common/version.hpp"
#include "ipc/segment/segment_layout.hpp"
#include "tools/checks/bench/context_bench.hpp"
#include "tools/checks/bench/engine_bench.hpp"
#include "tools/checks/bench/http_bench.hpp"
#include "tools/checks/bench/kernels_bench.hpp"
#include "tools/checks/bench/launch_cost.hpp"
#include "tools/checks/bench/peer_ratios.hpp"
#include "tools/checks/bench/poll_cost.hpp"
#include "tools/checks/bench/recover_bench.hpp"
#include "tools/checks/bench/report.hpp"
#include "tools/checks/bench/revoke_bench.hpp"
#include "tools/checks/bench/run_report.hpp"
#include "tools/checks/bench/serve_bench.hpp"
#include "tools/checks/bench/speculate_bench.hpp"
#include "tools/checks/bench/swap_bench.hpp"
#include "worker/model/kv_type.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::bench;

struct Options {
  RevokeConfig revoke;
  std::string step_model;
  std::uint32_t steps = kDecodeSteps;
  EngineBenchConfig engine;
  PeerRatiosConfig peer;
  ContextBenchConfig context;
  KernelsBenchConfig kernels;
  ServeConfig serve;
  HttpBenchConfig http;
  SpeculateBenchConfig speculate;
  SwapBenchConfig swap;
  RecoverConfig recover;
  std::uint64_t gate_units = 0;
  std::uint32_t launch_threads = 2;
  std::uint32_t launches = 10'000;
};

Result<Report> revoke(const Options& options) {
  const auto progress = [](const std::string& what) { std::cerr << "bench: " << what << '\n'; };
  RevokeReport report = TRY(run_revoke_bench(options.revoke, progress));
  std::string text = report_text(report.json);
  return Report{std::move(report.json), std::move(text),
                percentile_svg(clock_panels(report.clocks))};
}

Report json_report(nlohmann::json json) {
  std::string text = json.dump(2) + "\n";
  return {std::move(json), std::move(text), {}};
}

Result<Report> engine(const Options& options) {
  return json_report(TRY(measure_engine(options.engine)));
}

Result<Report> peer(const Options& options) {
  nlohmann::json json = TRY(measure_peer_ratios(options.peer));
  std::string text = peer_ratios_text(json);
  return Report{std::move(json), std::move(text), {}};
}

Result<Report> context(const Options& options) {
  return json_report(TRY(measure_contexts(options.context)));
}

Result<Report> kernels(const Options& options) {
  nlohmann::json json = TRY(measure_kernels(options.kernels));
  std::string text = kernels_text(json);
  return Report{std::move(json), std::move(text), {}};
}

Result<Report> serve(const Options& options) {
  return json_report(TRY(measure_serve(options.serve)));
}

Result<Report> http(const Options& options) {
  return json_report(TRY(measure_http(options.http)));
}

Result<Report> speculate(const Options& options) {
  return json_report(TRY(measure_speculation(options.speculate)));
}

Result<Report> swap(const Options& options) {
  return json_report(TRY(measure_swap(options.swap)));
}

Result<Report> recover(const Options& options) {
  return json_report(TRY(measure_recover(options.recover)));
}

Result<Report> step(const Options& options) {
  const StepCost cost = TRY(measure_step(options.step_model, options.steps));
  return Report{
      {{"units_per_step", cost.units}, {"step_us", cost.step_us}, {"steps", options.steps}},
      fmt::format("units_per_step={} step_us={:.1f} steps={}\n", cost.units, cost.step_us,
                  options.steps),
      {}};
}

Result<Report> gate(const Options& options) {
  const double gate_ns = TRY(measure_gate_ns(options.gate_units));
  return Report{{{"gate_ns", gate_ns}, {"units", options.gate_units}},
                fmt::format("gate_ns={:.2f} units={}\n", gate_ns, options.gate_units),
                {}};
}

Result<Report> launch(const Options& options) {
  const LaunchCost cost = TRY(measure_launch(options.launch_threads, options.launches));
  const auto json_of = [](const Distribution& us) {
    return nlohmann::json{{"p50", us.p50}, {"p90", us.p90}, {"p99", us.p99}};
  };
  const nlohmann::json json = {{"launch",
                                {{"threads", options.launch_threads},
                                 {"empty_us", json_of(cost.empty_us)},
                                 {"meeting_us", json_of(cost.meeting_us)}}}};
  return json_report(json);
}

void describe_revoke(CLI::App& app, Options& options) {
  app.add_option("--bin-dir", options.revoke.bin_dir, "Directory of the programs")->required();
  app.add_option("--demo-model", options.revoke.demo_model, "Small GGUF model")->required();
  app.add_option("--large-model", options.revoke.large_model,
                 "GGUF model of the 0.5B shape; default: measure the small model only");
  app.add_flag("--quick", options.revoke.quick, "Take a minute instead of ten: fewer samples");
  app.add_option("--only", options.revoke.measurements, "Run only this measurement; repeatable")
      ->check(
          CLI::IsMember(std::set<std::string>(std::begin(kMeasurements), std::end(kMeasurements))));
  app.add_option("--tenants", options.revoke.tenants,
                 "Number of tenants in a run of the clocks; repeatable")
      ->check(CLI::Range(1, 64));
  app.add_option("--flips", options.revoke.flips, "Revocations in each run of the clocks")
      ->check(CLI::Range(1, 4'000));
  app.add_option("--leases", options.revoke.mass_leases, "Leases of the mass revocation")
      ->check(CLI::Range(1, 16'000))
      ->capture_default_str();
  app.add_option("--seed", options.revoke.seed, "Seed for the revocation times")
      ->capture_default_str();
}

void describe_engine(CLI::App& app, Options& options) {
  app.add_option("--model", options.engine.model_path, "GGUF model")->required();
  app.add_option("--threads", options.engine.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--prompt-tokens", options.engine.prompt_tokens, "Tokens of the prompt")
      ->check(CLI::Range(1, 2'048))
      ->capture_default_str();
  app.add_option("--rounds", options.engine.rounds, "Rounds, each measuring everything once")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
}

void describe_peer(CLI::App& app, Options& options) {
  app.add_option("--peer", options.peer.peer_dir,
                 "Folder with llama.cpp's llama-bench and llama-batched-bench")
      ->required();
  app.add_option("--model", options.peer.model_paths, "GGUF model; repeatable")->required();
  app.add_option("--threads", options.peer.threads, "Compute threads; repeatable")
      ->check(CLI::Range(1u, kMaxGateThreads - 1));
  app.add_option("--prompt-tokens", options.peer.prompt_tokens, "Tokens of the prompt")
      ->check(CLI::Range(1, 2'048))
      ->capture_default_str();
  app.add_option("--rounds", options.peer.rounds, "Rounds, in which both engines take turns")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
}

void describe_context(CLI::App& app, Options& options) {
  app.add_option("--model", options.context.model_path, "GGUF model")->required();
  app.add_option("--arithmetic", options.context.arithmetic, "How matrices are multiplied")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("--simd", options.context.simd, "SIMD path; default: the widest of this CPU")
      ->check(CLI::IsMember({"scalar", "avx2", "avx512"}));
  app.add_option("--threads", options.context.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--kv-type", options.context.kv_type, "Element type of keys and values")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--other-kv-type", options.context.other_kv_type,
                 "Element type to measure in turn with --kv-type, with ratios")
      ->check(CLI::IsMember(kv_type_names()));
  app.add_option("--rounds", options.context.rounds,
                 "Rounds; the shortest time of each step counts")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
}

void describe_kernels(CLI::App& app, Options& options) {
  app.add_option("--format", options.kernels.formats,
                 "Format of the weights, for example Q4_K; repeatable; default: every format");
  app.add_option("--rows", options.kernels.rows, "Rows of a batch; repeatable")
      ->check(CLI::Range(1, 4'096));
  app.add_option("--simd", options.kernels.simd, "SIMD path; default: every path but scalar")
      ->check(CLI::IsMember({"scalar", "avx2", "avx512"}));
  app.add_option("--threads", options.kernels.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--n-out", options.kernels.n_out, "Rows of the matrix")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--n-in", options.kernels.n_in, "Elements of a row of the matrix")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--memory-mib", options.kernels.memory_mib, "Memory of the copies of the matrix")
      ->check(CLI::Range(1, 1 << 16))
      ->capture_default_str();
  app.add_option("--rounds", options.kernels.rounds, "Rounds; the best of each figure counts")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

void describe_serve(CLI::App& app, Options& options) {
  app.add_option("--bin-dir", options.serve.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", options.serve.model_path, "GGUF model")->required();
  app.add_option("--shares-model", options.serve.shares_model_path,
                 "GGUF model for the shares, which need many tokens; default: the model");
  app.add_option("--only", options.serve.measurements, "Run only this measurement; repeatable")
      ->check(CLI::IsMember(
          std::set<std::string>(std::begin(kServeMeasurements), std::end(kServeMeasurements))));
  app.add_option("--arithmetic", options.serve.arithmetic,
                 "How the worker multiplies matrices; auto is what it chooses by default")
      ->check(CLI::IsMember({"auto", "f32", "int8"}))
      ->capture_default_str();
  app.add_option("--streams", options.serve.streams, "Tenants that generate all the time")
      ->check(CLI::Range(1, 63))
      ->capture_default_str();
  app.add_option("--prompt-tokens", options.serve.prompt_tokens,
                 "Tokens of the prompt that arrives")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--rounds", options.serve.rounds, "Rounds, each with and without the prompt")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

void describe_http(CLI::App& app, Options& options) {
  app.add_option("--bin-dir", options.http.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", options.http.model_path, "GGUF model")->required();
  app.add_option("--requests", options.http.requests, "Requests of one token on each path")
      ->check(CLI::Range(1, 100'000))
      ->capture_default_str();
  app.add_option("--streams", options.http.streams, "Streams of the throughput")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--rounds", options.http.rounds, "Rounds of the throughput")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--revocations", options.http.revocations, "Revocations on each path")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

void describe_speculate(CLI::App& app, Options& options) {
  app.add_option("--bin-dir", options.speculate.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", options.speculate.model_path, "GGUF model")->required();
  app.add_option("--threads", options.speculate.threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--proposals", options.speculate.proposals, "The worker's --speculate")
      ->check(CLI::Range(1, 32))
      ->capture_default_str();
  app.add_option(
      "--draft-model", options.speculate.draft_model,
      "The worker's --draft-model; without it texts are continued with what they repeat");
  app.add_option("--tokens", options.speculate.tokens, "Tokens of each text in each round")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--rounds", options.speculate.rounds,
                 "Rounds, each with and without proposals in turn")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
}

void describe_swap(CLI::App& app, Options& options) {
  app.add_option("--model", options.swap.model_path, "GGUF model")->required();
  app.add_option(
         "--longest", options.swap.longest,
         "Longest text in tokens; the shortest has 64, and each has twice as many as the one "
         "before")
      ->check(CLI::Range(64, 1 << 16))
      ->capture_default_str();
  app.add_option("--rounds", options.swap.rounds, "Rounds, each measuring everything once")
      ->check(CLI::Range(1, 1'000))
      ->capture_default_str();
}

void describe_recover(CLI::App& app, Options& options) {
  app.add_option("--bin-dir", options.recover.bin_dir, "Directory of the programs")->required();
  app.add_option("--model", options.recover.model_path, "GGUF model")->required();
  app.add_option("--arithmetic", options.recover.arithmetic, "How the worker multiplies matrices")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("--prompt-tokens", options.recover.prompt_tokens,
                 "Tokens of each prompt whose worker is killed; at most half the model's context")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--texts", options.recover.texts, "Texts whose worker is killed")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--longest", options.recover.longest,
                 "Longest prompt that is rebound; the shortest has 64 tokens, and each has four "
                 "times as many as the one before")
      ->check(CLI::Range(64, 1 << 20))
      ->capture_default_str();
  app.add_option("--rounds", options.recover.rounds, "Rounds, each measuring everything once")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--slow-motion-us", options.recover.slow_motion_us,
                 "Pause after each unit of work, for a small model whose texts end too soon")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app.add_option("--lifetimes", options.recover.lifetimes,
                 "Lifetimes over which steps without a token are counted")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
}

void describe_step(CLI::App& app, Options& options) {
  app.add_option("--model", options.step_model, "GGUF model")->required();
  app.add_option("--steps", options.steps, "Number of steps")->check(CLI::Range(1, 200));
}

void describe_gate(CLI::App& app, Options& options) {
  app.add_option("--units", options.gate_units, "Number of units")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
}

void describe_launch(CLI::App& app, Options& options) {
  app.add_option("--threads", options.launch_threads, "Compute threads")
      ->check(CLI::Range(1u, kMaxGateThreads - 1))
      ->capture_default_str();
  app.add_option("--launches", options.launches, "Launches of each kind")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
}

struct Command {
  const char* name;
  const char* limits;
  const char* description;
  void (*describe)(CLI::App& app, Options& options);
  Result<Report> (*measure)(const Options& options);
  bool has_plot = false;
};
constexpr Command kCommands[] = {
    {"revoke", "", "Measure revocation and what it costs", describe_revoke, revoke, true},
    {"engine", "engine.", "Measure tokens per second in each arithmetic", describe_engine, engine},
    {"peer", "peer.", "Measure tokens per second of this engine and of llama.cpp", describe_peer,
     peer},
    {"context", "context.", "Measure a step at several lengths of context", describe_context,
     context},
    {"kernels", "kernels.", "Measure matmuls as shares of what the processor can do",
     describe_kernels, kernels},
    {"serve", "serve.", "Measure running streams while a long prompt arrives", describe_serve,
     serve},
    {"http", "http.", "Measure what HTTP costs beside the tenants' socket", describe_http, http},
    {"speculate", "speculate.", "Measure texts with and without proposed tokens",
     describe_speculate, speculate},
    {"swap", "swap.", "Measure swapping a text out and in, and computing it again", describe_swap,
     swap},
    {"recover", "recover.", "Measure deaths of workers and rebinds in each mode", describe_recover,
     recover},
    {"step", "step.", "Run decode steps alone, to count instructions", describe_step, step},
    {"gate", "gate.", "Run the gate alone, to count instructions", describe_gate, gate},
    {"launch", "launch.", "Measure a launch of the compute threads without work", describe_launch,
     launch},
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app{"Measure revocation on real processes, and the speed of the engine",
               "leasehold-bench"};
  app.set_version_flag("--version", "leasehold-bench " + std::string(version()));
  app.require_subcommand(1);
  std::map<std::string_view, ReportOptions> reports;
  for (const Command& command : kCommands) {
    CLI::App& described = *app.add_subcommand(command.name, command.description);
    command.describe(described, options);
    ReportOptions& report = reports[command.name];
    report = {.name = command.name, .limits = command.limits, .has_plot = command.has_plot};
    describe_report(described, report);
  }
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  const auto* const command = std::ranges::find_if(
      kCommands, [&](const Command& each) { return app.got_subcommand(each.name); });
  const Result<int> done =
      run_report(reports.at(command->name), [&] { return command->measure(options); });
  return done ? finish_program(app.get_name(), *done) : print_error(app.get_name(), done.error());
}
