#include "tests/checks/bench/commands.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>

#include "ipc/segment/segment_layout.hpp"
#include "kernels/model/kv_type.hpp"
#include "tests/checks/bench/adapter_bench.hpp"
#include "tests/checks/bench/certificate_bench.hpp"
#include "tests/checks/bench/context_bench.hpp"
#include "tests/checks/bench/control_bench.hpp"
#include "tests/checks/bench/engine_bench.hpp"
#include "tests/checks/bench/http_bench.hpp"
#include "tests/checks/bench/kernels_bench.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/recover_bench.hpp"
#include "tests/checks/bench/report.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/sleep_bench.hpp"
#include "tests/checks/bench/speculate_bench.hpp"
#include "tests/checks/bench/state_bench.hpp"
#include "tests/checks/bench/swap_bench.hpp"
#include "tests/checks/local_model/local_model.hpp"

namespace leasehold::bench {
namespace {

template <class Value, class Bound>
void add_number(CLI::App& app, const char* name, Value& value, const char* help, Bound least,
                Bound most) {
  app.add_option(name, value, help)->check(CLI::Range(least, most))->capture_default_str();
}

void add_threads(CLI::App& app, std::uint32_t& threads) {
  add_number(app, "--threads", threads, "Compute threads", 1u, kMaxGateThreads - 1);
}

void add_model(CLI::App& app, std::string& path) {
  app.add_option("--model", path, "GGUF model")->required();
}

void add_simd(CLI::App& app, std::string& simd, const char* help) {
  app.add_option("--simd", simd, help)
      ->check(CLI::IsMember({"scalar", "avx2", "avx-vnni", "avx512", "amx", "neon"}));
}

void add_bin_dir(CLI::App& app, std::string& path) {
  app.add_option("--bin-dir", path, "Directory of the programs")->required();
}

struct StepConfig {
  std::string model_path;
  std::uint32_t steps = kDecodeSteps;
};
struct BaseStepsConfig {
  std::string model_path;
  std::uint32_t steps = kDecodeSteps;
  std::uint32_t adapters = 0;
};
struct GateConfig {
  std::uint64_t units = 0;
};
struct SimdConfig {
  std::string simd;
};
struct LaunchConfig {
  std::uint32_t threads = 2;
  std::uint32_t launches = 10'000;
};

void describe(CLI::App& app, RevokeConfig& config) {
  add_bin_dir(app, config.bin_dir);
  app.add_option("--demo-model", config.demo_model, "Small GGUF model")->required();
  app.add_option("--large-model", config.large_model,
                 "GGUF model of the 0.5B shape; default: measure the small model only");
  app.add_flag("--quick", config.quick, "Take a minute instead of ten: fewer samples");
  app.add_option("--only", config.measurements, "Run only this measurement; repeatable")
      ->check(
          CLI::IsMember(std::set<std::string>(std::begin(kMeasurements), std::end(kMeasurements))));
  app.add_option("--tenants", config.tenants,
                 "Number of tenants in a run of the clocks; repeatable")
      ->check(CLI::Range(1, 64));
  app.add_option("--flips", config.flips, "Revocations in each run of the clocks")
      ->check(CLI::Range(1, 4'000));
  add_number(app, "--leases", config.mass_leases, "Leases of the mass revocation", 1, 16'000);
  app.add_option("--seed", config.seed, "Seed for the revocation times")->capture_default_str();
}

void describe(CLI::App& app, EngineBenchConfig& config) {
  add_model(app, config.model_path);
  add_simd(app, config.simd, "SIMD path; default: the fastest of this CPU");
  add_threads(app, config.threads);
  add_number(app, "--prompt-tokens", config.prompt_tokens, "Tokens of the prompt", 1, 2'048);
  add_number(app, "--rounds", config.rounds, "Rounds, each measuring everything once", 1, 1'000);
}

void describe(CLI::App& app, ContextBenchConfig& config) {
  add_model(app, config.model_path);
  app.add_option("--arithmetic", config.arithmetic, "How matrices are multiplied")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  add_simd(app, config.simd, "SIMD path; default: the fastest of this CPU");
  add_threads(app, config.threads);
  app.add_option("--kv-type", config.kv_type, "Element type of keys and values")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--other-kv-type", config.other_kv_type,
                 "Element type to measure in turn with --kv-type, with ratios")
      ->check(CLI::IsMember(kv_type_names()));
  add_number(app, "--rounds", config.rounds, "Rounds; the shortest time of each step counts", 1,
             1'000);
}

void describe(CLI::App& app, KernelsBenchConfig& config) {
  app.add_option("--format", config.formats,
                 "Format of the weights, for example Q4_K; repeatable; default: every format");
  app.add_option("--rows", config.rows, "Rows of a batch; repeatable")->check(CLI::Range(1, 4'096));
  add_simd(app, config.simd, "SIMD path; default: every path but scalar");
  add_threads(app, config.threads);
  add_number(app, "--n-out", config.n_out, "Rows of the matrix", 1, 1 << 20);
  add_number(app, "--n-in", config.n_in, "Elements of a row of the matrix", 1, 1 << 16);
  add_number(app, "--memory-mib", config.memory_mib, "Memory of the copies of the matrix", 1,
             1 << 16);
  add_number(app, "--rounds", config.rounds, "Rounds; the best of each figure counts", 1, 10'000);
}

void describe(CLI::App& app, ServeConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  app.add_option("--shares-model", config.shares_model_path,
                 "GGUF model for the shares, which need many tokens; default: the model");
  app.add_option("--only", config.measurements, "Run only this measurement; repeatable")
      ->check(CLI::IsMember(
          std::set<std::string>(std::begin(kServeMeasurements), std::end(kServeMeasurements))));
  app.add_option("--arithmetic", config.arithmetic,
                 "How the worker multiplies matrices; auto is what it chooses by default")
      ->check(CLI::IsMember({"auto", "f32", "int8"}))
      ->capture_default_str();
  add_number(app, "--streams", config.streams, "Tenants that generate all the time", 1, 63);
  add_number(app, "--prompt-tokens", config.prompt_tokens, "Tokens of the prompt that arrives", 1,
             1 << 20);
  add_number(app, "--rounds", config.rounds, "Rounds, each with and without the prompt", 1, 100);
}

void describe(CLI::App& app, HttpBenchConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  add_simd(app, config.simd, "SIMD path; default: the fastest of this CPU");
  add_number(app, "--requests", config.requests, "Requests of one token on each path", 1, 100'000);
  add_number(app, "--streams", config.streams, "Streams of the throughput", 1, 64);
  add_number(app, "--rounds", config.rounds, "Rounds of the throughput", 1, 100);
  add_number(app, "--revocations", config.revocations, "Revocations on each path", 1, 10'000);
}

void describe(CLI::App& app, SpeculateBenchConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  add_threads(app, config.threads);
  add_number(app, "--proposals", config.proposals, "The worker's --speculate", 1, 32);
  app.add_option(
      "--draft-model", config.draft_model,
      "The worker's --draft-model; without it texts are continued with what they repeat");
  add_number(app, "--tokens", config.tokens, "Tokens of each text in each round", 1, 1'000'000);
  add_number(app, "--rounds", config.rounds, "Rounds, each with and without proposals in turn", 1,
             100);
}

/// The figures have the options of `engine` and the length of the answers.
void describe_figures(CLI::App& app, EngineBenchConfig& config) {
  describe(app, config);
  add_number(app, "--decoded-tokens", config.decoded_tokens, "Tokens of each answer", 1, 2'048);
}

void describe(CLI::App& app, SwapBenchConfig& config) {
  add_model(app, config.model_path);
  add_number(
      app, "--longest", config.longest,
      "Longest text in tokens; the shortest has 64, and each has twice as many as the one before",
      64, 1 << 16);
  add_number(app, "--rounds", config.rounds, "Rounds, each measuring everything once", 1, 1'000);
}

void describe(CLI::App& app, StateBenchConfig& config) {
  add_model(app, config.model_path);
  add_number(app, "--streams", config.streams, "Texts that decode at the same time", 1, 64);
  add_number(app, "--prompt-tokens", config.prompt_tokens, "Tokens of the longest prompt", 257,
             1 << 16);
  add_number(app, "--rounds", config.rounds, "Rounds, each with and without snapshots in turn", 1,
             100);
}

void describe(CLI::App& app, AdapterBenchConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  app.add_option("--only", config.measurements, "Run only this measurement; repeatable")
      ->check(CLI::IsMember(
          std::set<std::string>(std::begin(kAdapterMeasurements), std::end(kAdapterMeasurements))));
  add_threads(app, config.threads);
  add_simd(app, config.simd, "SIMD path; default: the fastest of this CPU");
  add_number(app, "--rounds", config.rounds, "Rounds, each with a step of every kind", 1, 1'000);
  add_number(app, "--prompt-rows", config.prompt_rows, "Tokens of the prompt", 1, 512);
  add_number(app, "--calm-seconds", config.calm_seconds, "Seconds of streams without loads", 1,
             1'000);
}

void describe(CLI::App& app, SleepBenchConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  add_number(app, "--rounds", config.rounds, "Rounds, each with a sleep, a wake and a load", 1,
             100);
}

void describe(CLI::App& app, ControlBenchConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  add_number(app, "--leases", config.leases, "Idle leases beside those that are measured", 64,
             16'000);
  add_number(app, "--mass-leases", config.mass_leases, "Leases revoked by one command", 1, 16'000);
  add_number(app, "--cycles", config.cycles, "Leases that are acquired and released", 100,
             1'000'000);
  add_number(app, "--rounds", config.rounds, "Revocations that are waited for", 1, 1'000);
}

void describe(CLI::App& app, RecoverConfig& config) {
  add_bin_dir(app, config.bin_dir);
  add_model(app, config.model_path);
  app.add_option("--arithmetic", config.arithmetic, "How the worker multiplies matrices")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  add_number(app, "--prompt-tokens", config.prompt_tokens,
             "Tokens of each prompt whose worker is killed; at most half the model's context", 1,
             1 << 20);
  add_number(app, "--texts", config.texts, "Texts whose worker is killed", 1, 64);
  add_number(app, "--longest", config.longest,
             "Longest prompt that is rebound; the shortest has 64 tokens, and each has four times "
             "as many as the one before",
             64, 1 << 20);
  add_number(app, "--rounds", config.rounds, "Rounds, each measuring everything once", 1, 100);
  add_number(app, "--slow-motion-us", config.slow_motion_us,
             "Pause after each unit of work, for a small model whose texts end too soon", 0,
             1'000'000);
  add_number(app, "--lifetimes", config.lifetimes,
             "Lifetimes over which steps without a token are counted", 1, 10'000);
}

void describe(CLI::App& app, StepConfig& config) {
  add_model(app, config.model_path);
  app.add_option("--steps", config.steps, "Number of steps")->check(CLI::Range(1, 200));
}

void describe(CLI::App& app, BaseStepsConfig& config) {
  add_model(app, config.model_path);
  add_number(app, "--steps", config.steps, "Number of steps", 1, 200);
  add_number(app, "--adapters", config.adapters, "Adapters that are loaded and not used", 0, 64);
}

void describe(CLI::App& app, GateConfig& config) {
  app.add_option("--units", config.units, "Number of units")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
}

void describe(CLI::App& app, SimdConfig& config) {
  add_simd(app, config.simd, "SIMD path; default: the fastest of this CPU");
}

void describe(CLI::App& app, LaunchConfig& config) {
  add_threads(app, config.threads);
  add_number(app, "--launches", config.launches, "Launches of each kind", 1, 10'000'000);
}

Result<Report> revoke(const RevokeConfig& config) {
  const auto progress = [](const std::string& what) { std::cerr << "bench: " << what << '\n'; };
  RevokeReport report = TRY(run_revoke_bench(config, progress));
  std::string text = report_text(report.json);
  return Report{std::move(report.json), std::move(text),
                percentile_svg(clock_panels(report.clocks))};
}

Result<Report> step(const StepConfig& config) {
  const StepCost cost = TRY(measure_step(config.model_path, config.steps));
  return Report{
      {{"units_per_step", cost.units}, {"step_us", cost.step_us}, {"steps", config.steps}},
      fmt::format("units_per_step={} step_us={:.1f} steps={}\n", cost.units, cost.step_us,
                  config.steps)};
}

Result<Report> base_steps(const BaseStepsConfig& config) {
  TRY(run_base_steps(config.model_path, config.steps, config.adapters));
  return Report{{{"steps", config.steps}, {"adapters", config.adapters}},
                fmt::format("steps={} adapters={}\n", config.steps, config.adapters)};
}

Result<Report> gate(const GateConfig& config) {
  const double gate_ns = TRY(measure_gate_ns(config.units));
  return Report{{{"gate_ns", gate_ns}, {"units", config.units}},
                fmt::format("gate_ns={:.2f} units={}\n", gate_ns, config.units)};
}

Result<Report> simd_path(const SimdConfig& config) {
  const std::string path{name(simd_path_or_best(config.simd))};
  return Report{{{"simd", path}}, path + "\n"};
}

Result<nlohmann::json> launch(const LaunchConfig& config) {
  const Samples samples = TRY(measure_launch(config.threads, config.launches));
  nlohmann::json report = figures_of(samples, Statistic::Distribution);
  report["threads"] = config.threads;
  return nlohmann::json{{"launch", std::move(report)}};
}

/// Reads what a driver in tests/checks/peer or hosts measured: {"report", "text"} on stdin.
Result<Report> read_driver() {
  const auto measured = nlohmann::json::parse(std::cin, nullptr, false);
  if (measured.is_object() && measured.contains("report") && measured.contains("text") &&
      measured["text"].is_string())
    return Report{measured["report"], measured["text"]};
  return fail(Errc::MalformedMessage,
              "stdin has no report; run `tools/bench COMMAND --peer DIR`, `tools/bench gateway` or "
              "`tools/bench cell`");
}

std::string dump(const nlohmann::json& report) {
  return report.dump(2) + "\n";
}

template <class Config>
Command command(const char* name, const char* description, Result<Report> (*measure)(const Config&),
                bool has_plot = false) {
  const auto config = std::make_shared<Config>();
  return {name, description, [config](CLI::App& app) { describe(app, *config); },
          [config, measure] { return measure(*config); }, has_plot};
}

/// A command whose report has the text of `text_of`.
template <class Config>
Command command(const char* name, const char* description,
                Result<nlohmann::json> (*measure)(const Config&),
                std::string (*text_of)(const nlohmann::json&) = dump,
                void (*describe_config)(CLI::App&, Config&) = describe) {
  const auto config = std::make_shared<Config>();
  return {name, description,
          [config, describe_config](CLI::App& app) { describe_config(app, *config); },
          [config, measure, text_of]() -> Result<Report> {
            nlohmann::json json = TRY(measure(*config));
            std::string text = text_of(json);
            return Report{std::move(json), std::move(text)};
          }};
}

}  // namespace

std::vector<Command> commands() {
  const auto no_options = [](CLI::App&) {};
  return {
      command("revoke", "Measure revocation and what it costs", revoke, true),
      command("engine", "Measure tokens per second in each arithmetic", measure_engine),
      command("figures", "Measure tokens per second once, for a comparison with another engine",
              measure_figures, dump, describe_figures),
      command("simd", "Print the SIMD path that runs on this CPU", simd_path),
      {"peer", "Report tokens per second of this engine and of llama.cpp, from stdin", no_options,
       read_driver},
      {"peer-serve", "Report completions over HTTP of this engine and of llama.cpp, from stdin",
       no_options, read_driver},
      {"gateway", "Report texts through hosts that fail, and costs of a gateway, from stdin",
       no_options, read_driver},
      {"cell", "Report what a cell of hosts promises, from stdin", no_options, read_driver},
      command("context", "Measure a step at several lengths of context", measure_contexts),
      command("kernels", "Measure matmuls as shares of what the processor can do", measure_kernels,
              kernels_text),
      command("serve", "Measure running streams while a long prompt arrives", measure_serve),
      command("http", "Measure what HTTP costs beside the tenants' socket", measure_http),
      command("speculate", "Measure texts with and without proposed tokens", measure_speculation),
      command("states", "Measure steps beside snapshots of recurrent states", measure_states),
      command("adapters", "Measure steps with adapters, their loads and their revocations",
              measure_adapters),
      command("swap", "Measure swapping a text out and in, and computing it again", measure_swap),
      command("sleep", "Measure a worker's sleep and wake beside a load", measure_sleep),
      command("control", "Measure the costs of leases that are idle, and of revocations",
              measure_control),
      command("certificates", "Measure certificates of erased memory, and starts with many records",
              measure_certificates, dump, describe_certificates),
      command("recover", "Measure deaths of workers and rebinds in each mode", measure_recover),
      command("step", "Run decode steps alone, to count instructions", step),
      command("base-steps", "Run steps beside adapters that no text uses, to count instructions",
              base_steps),
      {"instructions", "Report instructions of steps beside adapters that no text uses, from stdin",
       no_options, read_driver},
      command("gate", "Run the gate alone, to count instructions", gate),
      command("launch", "Measure a launch of the compute threads without work", launch),
  };
}

}  // namespace leasehold::bench
