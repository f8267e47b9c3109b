// leasehold-perplexity on a file as llama.cpp's llama-perplexity writes it.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/unit/checks/perplexity/peer_file.hpp"

using namespace leasehold;

namespace {

constexpr std::uint32_t kWindow = 32;

std::string story_path() {
  return source_dir() + "/tests/data/texts/story.txt";
}

ProgramEnd perplexity(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--model", bundled_model_path(), "--text", story_path()});
  return run_to_end("leasehold-perplexity", std::move(arguments));
}

/// A peer's file that was computed in int8.
struct Peer {
  TemporaryDirectory directory = TemporaryDirectory::create("peer").value();
  std::string path = directory.file("logits");

  Peer() {
    testing::computed_file(bundled_model_path(), file_bytes(story_path()), kWindow, KvType::F16,
                           Arithmetic::Int8)
        .write(path);
  }
  ProgramEnd compare() const {
    return perplexity({"--peer-logits", path, "--window", std::to_string(kWindow), "--arithmetic",
                       "int8", "--reference-kv-type", "f32"});
  }
};

}  // namespace

TEST_CASE("perplexity program: a peer as far from the reference as int8 has our divergence") {
  const ProgramEnd run = Peer().compare();
  CAPTURE(run.output, run.errors);
  REQUIRE(run.exit_code == kExitOk);
  const auto file = nlohmann::json::parse(run.output);
  CHECK(file.at("positions") > 100);
  CHECK(file.at("peer") == file.at("ours"));
  CHECK(file.at("ours") > file.at("code_floor"));
  for (const char* number : {"ours_exact", "difference_error"}) CHECK(file.at(number) >= 0);
}

TEST_CASE("perplexity program: a file that was cut off is an error that names it") {
  const Peer peer;
  std::filesystem::resize_file(peer.path, std::filesystem::file_size(peer.path) / 2);
  const ProgramEnd run = peer.compare();
  CHECK(run.exit_code == exit_code(Errc::FileCorrupt));
  CHECK(run.errors.contains("run llama-perplexity again"));
}

TEST_CASE("perplexity program: the window of a peer is checked alone") {
  CHECK(perplexity({"--check-window", "--window", "32"}).exit_code == kExitOk);
  CHECK(perplexity({"--check-window", "--window", "3"}).exit_code == exit_code(Errc::BadRequest));
}

TEST_CASE("perplexity program: options that need a peer, or exclude one, are wrong usage") {
  const std::vector<std::string> peer = {"--peer-logits", "/nowhere", "--window", "32"};
  const auto with = [&peer](std::vector<std::string> more) {
    more.insert(more.end(), peer.begin(), peer.end());
    return perplexity(std::move(more)).exit_code;
  };
  CHECK(perplexity({"--check"}).exit_code == 2);
  CHECK(perplexity({"--windows", "2"}).exit_code == 2);
  CHECK(perplexity({"--model", bundled_model_path()}).exit_code == 2);
  CHECK(perplexity({"--peer-logits", "/nowhere"}).exit_code == 2);
  CHECK(with({"--reference", bundled_model_path()}) == 2);
  CHECK(with({"--backend", "reference"}) == 2);
  CHECK(with({}) == exit_code(Errc::FileNotFound));
}
