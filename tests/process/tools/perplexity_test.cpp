// leasehold-perplexity beside a program that acts as llama.cpp's llama-perplexity.
#include <catch2/catch.hpp>

#include "common/cli/command_line.hpp"
#include "tests/process/tools/program_run.hpp"
#include "tests/unit/checks/perplexity/fake_peer.hpp"

using namespace leasehold;

namespace {

constexpr std::uint32_t kWindow = 32;
constexpr const char* kModelName = "leasehold-stories-q8_0";

std::string story_path() {
  return source_dir() + "/tests/data/texts/story.txt";
}

void prepare(const testing::FakePeer& peer, KvType kv_type, Arithmetic arithmetic) {
  std::ifstream file(story_path());
  const std::string story{std::istreambuf_iterator<char>(file), {}};
  peer.prepare(kModelName,
               testing::computed_file(bundled_model_path(), story, kWindow, kv_type, arithmetic));
}

struct Finished {
  int exit_code;
  std::string output, errors;
};

Finished perplexity(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--model", bundled_model_path(), "--text", story_path()});
  ProgramRun run("leasehold-perplexity", std::move(arguments));
  const int exit_code = run.finish([] {});
  return {exit_code, run.output, run.errors()};
}

Finished beside(const testing::FakePeer& peer, const std::string& option = "--check") {
  return perplexity({"--peer", peer.directory.path(), "--window", std::to_string(kWindow), option});
}

}  // namespace

TEST_CASE("perplexity program: a peer as far from the reference as int8 passes the check") {
  const testing::FakePeer peer;
  prepare(peer, KvType::F16, Arithmetic::Int8);
  const Finished run = beside(peer);
  CAPTURE(run.output, run.errors);
  CHECK(run.exit_code == kExitOk);
  CHECK(run.output.find(kModelName) != std::string::npos);
  CHECK(run.output.find("1.000") != std::string::npos);
  CHECK(run.output.find("llama.cpp fake 7; ours: int8") != std::string::npos);
}

TEST_CASE("perplexity program: a peer that is nearer fails the check with 1 and is printed") {
  const testing::FakePeer peer;
  prepare(peer, KvType::F32, Arithmetic::F32);
  const Finished checked = beside(peer);
  CHECK(checked.exit_code == 1);
  CHECK(checked.output.find("BEYOND") != std::string::npos);
  const Finished printed = beside(peer, "--threads=1");
  CHECK(printed.exit_code == kExitOk);
  CHECK(printed.output == checked.output);
}

TEST_CASE("perplexity program: a file that was cut off is named, and fails the check") {
  const testing::FakePeer peer;
  prepare(peer, KvType::F16, Arithmetic::Int8);
  const std::string file = peer.directory.file(std::string(kModelName) + ".logits");
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  const Finished run = beside(peer);
  CHECK(run.exit_code == 1);
  CHECK(run.output.find("not compared") != std::string::npos);
  CHECK(run.output.find("run llama-perplexity again") != std::string::npos);
}

TEST_CASE("perplexity program: options that need a peer, or exclude one, are wrong usage") {
  CHECK(perplexity({"--check"}).exit_code == 2);
  CHECK(perplexity({"--windows", "2"}).exit_code == 2);
  CHECK(perplexity({"--model", bundled_model_path()}).exit_code == 2);
  CHECK(perplexity({"--peer", "/nowhere", "--reference", bundled_model_path()}).exit_code == 2);
  CHECK(perplexity({"--peer", "/nowhere", "--backend", "reference"}).exit_code == 2);
  CHECK(perplexity({"--peer", "/nowhere"}).exit_code == exit_code(Errc::FileNotFound));
}
