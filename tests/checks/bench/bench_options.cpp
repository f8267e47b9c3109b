#include "tests/checks/bench/bench_options.hpp"

#include "ipc/segment/segment_layout.hpp"
#include "kernels/model/kv_type.hpp"

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

void add_bin_dir(CLI::App& app, std::string& path) {
  app.add_option("--bin-dir", path, "Directory of the programs")->required();
}

}  // namespace

void describe_revoke(CLI::App& app, Options& options) {
  add_bin_dir(app, options.revoke.bin_dir);
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
  add_number(app, "--leases", options.revoke.mass_leases, "Leases of the mass revocation", 1,
             16'000);
  app.add_option("--seed", options.revoke.seed, "Seed for the revocation times")
      ->capture_default_str();
}

void describe_engine(CLI::App& app, Options& options) {
  add_model(app, options.engine.model_path);
  add_threads(app, options.engine.threads);
  add_number(app, "--prompt-tokens", options.engine.prompt_tokens, "Tokens of the prompt", 1,
             2'048);
  add_number(app, "--rounds", options.engine.rounds, "Rounds, each measuring everything once", 1,
             1'000);
}

void describe_context(CLI::App& app, Options& options) {
  add_model(app, options.context.model_path);
  app.add_option("--arithmetic", options.context.arithmetic, "How matrices are multiplied")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  app.add_option("--simd", options.context.simd, "SIMD path; default: the fastest of this CPU")
      ->check(CLI::IsMember({"scalar", "avx2", "avx-vnni", "avx512", "amx"}));
  add_threads(app, options.context.threads);
  app.add_option("--kv-type", options.context.kv_type, "Element type of keys and values")
      ->check(CLI::IsMember(kv_type_names()))
      ->capture_default_str();
  app.add_option("--other-kv-type", options.context.other_kv_type,
                 "Element type to measure in turn with --kv-type, with ratios")
      ->check(CLI::IsMember(kv_type_names()));
  add_number(app, "--rounds", options.context.rounds,
             "Rounds; the shortest time of each step counts", 1, 1'000);
}

void describe_kernels(CLI::App& app, Options& options) {
  app.add_option("--format", options.kernels.formats,
                 "Format of the weights, for example Q4_K; repeatable; default: every format");
  app.add_option("--rows", options.kernels.rows, "Rows of a batch; repeatable")
      ->check(CLI::Range(1, 4'096));
  app.add_option("--simd", options.kernels.simd, "SIMD path; default: every path but scalar")
      ->check(CLI::IsMember({"scalar", "avx2", "avx-vnni", "avx512", "amx"}));
  add_threads(app, options.kernels.threads);
  add_number(app, "--n-out", options.kernels.n_out, "Rows of the matrix", 1, 1 << 20);
  add_number(app, "--n-in", options.kernels.n_in, "Elements of a row of the matrix", 1, 1 << 16);
  add_number(app, "--memory-mib", options.kernels.memory_mib, "Memory of the copies of the matrix",
             1, 1 << 16);
  add_number(app, "--rounds", options.kernels.rounds, "Rounds; the best of each figure counts", 1,
             10'000);
}

void describe_serve(CLI::App& app, Options& options) {
  add_bin_dir(app, options.serve.bin_dir);
  add_model(app, options.serve.model_path);
  app.add_option("--shares-model", options.serve.shares_model_path,
                 "GGUF model for the shares, which need many tokens; default: the model");
  app.add_option("--only", options.serve.measurements, "Run only this measurement; repeatable")
      ->check(CLI::IsMember(
          std::set<std::string>(std::begin(kServeMeasurements), std::end(kServeMeasurements))));
  app.add_option("--arithmetic", options.serve.arithmetic,
                 "How the worker multiplies matrices; auto is what it chooses by default")
      ->check(CLI::IsMember({"auto", "f32", "int8"}))
      ->capture_default_str();
  add_number(app, "--streams", options.serve.streams, "Tenants that generate all the time", 1, 63);
  add_number(app, "--prompt-tokens", options.serve.prompt_tokens,
             "Tokens of the prompt that arrives", 1, 1 << 20);
  add_number(app, "--rounds", options.serve.rounds, "Rounds, each with and without the prompt", 1,
             100);
}

void describe_http(CLI::App& app, Options& options) {
  add_bin_dir(app, options.http.bin_dir);
  add_model(app, options.http.model_path);
  add_number(app, "--requests", options.http.requests, "Requests of one token on each path", 1,
             100'000);
  add_number(app, "--streams", options.http.streams, "Streams of the throughput", 1, 64);
  add_number(app, "--rounds", options.http.rounds, "Rounds of the throughput", 1, 100);
  add_number(app, "--revocations", options.http.revocations, "Revocations on each path", 1, 10'000);
}

void describe_speculate(CLI::App& app, Options& options) {
  add_bin_dir(app, options.speculate.bin_dir);
  add_model(app, options.speculate.model_path);
  add_threads(app, options.speculate.threads);
  add_number(app, "--proposals", options.speculate.proposals, "The worker's --speculate", 1, 32);
  app.add_option(
      "--draft-model", options.speculate.draft_model,
      "The worker's --draft-model; without it texts are continued with what they repeat");
  add_number(app, "--tokens", options.speculate.tokens, "Tokens of each text in each round", 1,
             1'000'000);
  add_number(app, "--rounds", options.speculate.rounds,
             "Rounds, each with and without proposals in turn", 1, 100);
}

/// The figures have the options of `engine` and the length of the answers.
void describe_figures(CLI::App& app, Options& options) {
  describe_engine(app, options);
  add_number(app, "--decoded-tokens", options.engine.decoded_tokens, "Tokens of each answer", 1,
             2'048);
}

void describe_swap(CLI::App& app, Options& options) {
  add_model(app, options.swap.model_path);
  add_number(
      app, "--longest", options.swap.longest,
      "Longest text in tokens; the shortest has 64, and each has twice as many as the one before",
      64, 1 << 16);
  add_number(app, "--rounds", options.swap.rounds, "Rounds, each measuring everything once", 1,
             1'000);
}

void describe_recover(CLI::App& app, Options& options) {
  add_bin_dir(app, options.recover.bin_dir);
  add_model(app, options.recover.model_path);
  app.add_option("--arithmetic", options.recover.arithmetic, "How the worker multiplies matrices")
      ->check(CLI::IsMember({"f32", "int8"}))
      ->capture_default_str();
  add_number(app, "--prompt-tokens", options.recover.prompt_tokens,
             "Tokens of each prompt whose worker is killed; at most half the model's context", 1,
             1 << 20);
  add_number(app, "--texts", options.recover.texts, "Texts whose worker is killed", 1, 64);
  add_number(app, "--longest", options.recover.longest,
             "Longest prompt that is rebound; the shortest has 64 tokens, and each has four times "
             "as many as the one before",
             64, 1 << 20);
  add_number(app, "--rounds", options.recover.rounds, "Rounds, each measuring everything once", 1,
             100);
  add_number(app, "--slow-motion-us", options.recover.slow_motion_us,
             "Pause after each unit of work, for a small model whose texts end too soon", 0,
             1'000'000);
  add_number(app, "--lifetimes", options.recover.lifetimes,
             "Lifetimes over which steps without a token are counted", 1, 10'000);
}

void describe_step(CLI::App& app, Options& options) {
  add_model(app, options.step_model);
  app.add_option("--steps", options.steps, "Number of steps")->check(CLI::Range(1, 200));
}

void describe_gate(CLI::App& app, Options& options) {
  app.add_option("--units", options.gate_units, "Number of units")
      ->required()
      ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
}

void describe_launch(CLI::App& app, Options& options) {
  add_threads(app, options.launch_threads);
  add_number(app, "--launches", options.launches, "Launches of each kind", 1, 10'000'000);
}

}  // namespace leasehold::bench
