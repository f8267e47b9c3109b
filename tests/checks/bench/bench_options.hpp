/// The options of each subcommand of leasehold-bench, and their descriptions.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "tests/checks/bench/context_bench.hpp"
#include "tests/checks/bench/engine_bench.hpp"
#include "tests/checks/bench/http_bench.hpp"
#include "tests/checks/bench/kernels_bench.hpp"
#include "tests/checks/bench/poll_cost.hpp"
#include "tests/checks/bench/recover_bench.hpp"
#include "tests/checks/bench/revoke_bench.hpp"
#include "tests/checks/bench/serve_bench.hpp"
#include "tests/checks/bench/speculate_bench.hpp"
#include "tests/checks/bench/swap_bench.hpp"

namespace leasehold::bench {

struct Options {
  RevokeConfig revoke;
  std::string step_model;
  std::uint32_t steps = kDecodeSteps;
  EngineBenchConfig engine;
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

void describe_revoke(CLI::App& app, Options& options);
void describe_engine(CLI::App& app, Options& options);
void describe_figures(CLI::App& app, Options& options);
void describe_context(CLI::App& app, Options& options);
void describe_kernels(CLI::App& app, Options& options);
void describe_serve(CLI::App& app, Options& options);
void describe_http(CLI::App& app, Options& options);
void describe_speculate(CLI::App& app, Options& options);
void describe_swap(CLI::App& app, Options& options);
void describe_recover(CLI::App& app, Options& options);
void describe_step(CLI::App& app, Options& options);
void describe_gate(CLI::App& app, Options& options);
void describe_launch(CLI::App& app, Options& options);

}  // namespace leasehold::bench
