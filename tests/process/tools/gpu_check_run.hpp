/// leasehold-gpu-check on the fake driver, and programs in front of others.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/tools/program_run.hpp"
#include "tests/support/fake_cuda/card_state.hpp"

namespace leasehold {

namespace fs = std::filesystem;
using Json = nlohmann::json;

inline constexpr auto kGpuCheckTimeout = std::chrono::minutes(20);

/// A folder for the report, and one with the smallest model and one with wide heads.
struct Folders {
  fs::path root = fs::temp_directory_path() / ("leasehold-gpu-check-" + std::to_string(::getpid()));
  Folders() {
    fs::create_directories(root / "models");
    for (const char* model : {"stories260K-q8_0", "kq-llama-q4_k_m"})
      for (const char* ending : {".gguf", ".json"}) {
        const std::string name = std::string(model) + ending;
        fs::copy_file(test_data_path("models/" + name), root / "models" / name);
      }
  }
  ~Folders() { fs::remove_all(root); }

  std::vector<std::string> arguments(const std::string& only) const {
    return {"--bin-dir", program_dir(), "--model-dir", root / "models", "--out", root / "report",
            "--tiny",    "--minutes",   "30",          "--only",        only};
  }
  Json report() const { return Json::parse(std::ifstream(root / "report" / "report.json")); }
};

/// A run of some stages on a good card, which an environment may spoil.
struct CardRun {
  int finish(const std::string& stages) { return finish(folders.arguments(stages)); }
  int finish(const std::vector<std::string>& arguments) {
    ProgramRun run("leasehold-gpu-check", arguments);
    const int code = run.finish([] {}, kGpuCheckTimeout);
    output = run.output;
    UNSCOPED_INFO(output << run.errors());
    return code;
  }

  Folders folders;
  testing::CardState card;
  Variable state{"FAKE_CUDA_STATE", card.path()};
  std::string output;
};

/// Puts a script in front of every other program of that name while this object lives.
struct Script {
  Script(const fs::path& folder, const std::string& name, const std::string& body)
      : path("PATH", (fs::create_directories(folder), folder.string()) + ":/usr/bin:/bin") {
    write_script(folder / name, body);
  }
  static void write_script(const fs::path& file, const std::string& body) {
    std::ofstream(file) << "#!/bin/sh\n" << body << "\n";
    fs::permissions(file, fs::perms::owner_all);
  }
  Variable path;
};

inline Json numbers_of(const Json& report, const std::string& stage) {
  for (const Json& one : report.at("stages"))
    if (one.at("stage") == stage) return one.at("numbers");
  return {};
}

}  // namespace leasehold
