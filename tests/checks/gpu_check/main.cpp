/// leasehold-gpu-check: checks support, correctness and speed on a machine with a GPU.
#include <fmt/format.h>
#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <map>

#include "common/cli/command_line.hpp"
#include "common/cli/version.hpp"
#include "tests/checks/gpu_check/importer.hpp"
#include "tests/checks/gpu_check/stages.hpp"

namespace {

using namespace leasehold;
using namespace leasehold::gpu_check;

constexpr const char* kProgram = "leasehold-gpu-check";

/// Options that the program passes to its own child processes.
struct InternalOptions {
  std::string stage;
  std::map<ImportMode, std::size_t> import_bytes;
};

void describe(CLI::App& app, Settings& settings, InternalOptions& internal) {
  app.set_version_flag("--version", "leasehold-gpu-check " + std::string(version()));
  app.add_option("--bin-dir", settings.bin_dir, "Directory of the programs; required");
  app.add_option("--model-dir", settings.model_dir, "Directory of models and their oracle files");
  app.add_option("--out", settings.out_dir, "Directory for the report");
  app.add_option("--only", settings.only,
                 "Comma-separated stages, run in this order: " + stage_names() +
                     "; default: all that can run")
      ->check(check_stages);
  app.add_option(
      "--peer", settings.peer_dir,
      "Directory of llama.cpp's llama-bench and llama-batched-bench, for the stage llama");
  app.add_option("--minutes", settings.minutes, "Time limit for all stages")
      ->check(CLI::Range(0.1, 1440.0));
  app.add_option("--ordinal", settings.ordinal, "Ordinal of the GPU")->check(CLI::Range(0, 255));
  app.add_flag("--tiny", settings.tiny, "Use small shapes, for a driver that computes on the CPU");
  app.add_option("--stage", internal.stage)->group("");
  for (const ImportMode mode : kImportModes)
    app.add_option(std::string(option_of(mode)), internal.import_bytes[mode])->group("");
}

int run(const Settings& settings, const InternalOptions& internal) {
  for (const auto& [mode, size_bytes] : internal.import_bytes)
    if (size_bytes != 0) return run_importer(mode, settings.ordinal, size_bytes);
  if (settings.bin_dir.empty())
    return print_error(kProgram, Usage{.exit_code = kExitUsage, .text = "--bin-dir is required"});
  std::error_code failed;
  std::filesystem::create_directories(settings.out_dir, failed);
  if (failed)
    return print_error(kProgram,
                       fail_file("making --out " + settings.out_dir, failed.value()).error());
  if (!internal.stage.empty()) return run_stage(settings, internal.stage);
  const Result<int> code = orchestrate(settings, std::cout);
  return code ? finish_program(kProgram, *code) : print_error(kProgram, code.error());
}

}  // namespace

int main(int argc, char** argv) {
  // Loads kernels eagerly, as the worker does; figures with lazily loaded kernels would differ from
  // the worker's.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 0);
  Settings settings;
  settings.out_dir = "gpu-check";
  InternalOptions internal;
  CLI::App app{"Check Leasehold on a machine with a GPU", kProgram};
  describe(app, settings, internal);
  if (const auto ended = parse_command_line(app, argc, argv)) return *ended;
  return run(settings, internal);
}
