#include "tests/checks/bench/peer_ratios.hpp"

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "common/machine/temporary_directory.hpp"
#include "tests/support/required.hpp"
#include "tests/support/test_paths.hpp"

namespace leasehold::bench {
namespace {

/// Prints other speeds in each run: 10, 40, 20 for the answer, 1000 for the prompt.
constexpr const char* kBench = R"(#!/bin/sh
echo "$@" >> "$0.arguments"
run=$(wc -l < "$0.arguments")
speed=$(echo "10 40 20" | cut -d ' ' -f "$run")
line='"build_commit": "fake", "build_number": 3, "model_type": "shape Q8_0", "n_threads": 1'
echo "{$line, \"n_prompt\": 20, \"n_gen\": 0, \"avg_ts\": 1000}"
echo "{$line, \"n_prompt\": 0, \"n_gen\": 2, \"avg_ts\": $speed.0}"
)";
constexpr const char* kBatchedBench = R"(#!/bin/sh
echo "$@" >> "$0.arguments"
echo '{"n_threads": 1, "pl": 8, "speed_tg": 80}'
echo '{"n_threads": 1, "pl": 32, "speed_tg": 320}'
)";

Error error_of(const PeerRatiosConfig& config) {
  const auto report = measure_peer_ratios(config);
  REQUIRE_FALSE(report);
  return report.error();
}

struct FakePeer {
  TemporaryDirectory directory = TemporaryDirectory::create("fake-peer").value();

  FakePeer() {
    write("llama-bench", kBench);
    write("llama-batched-bench", kBatchedBench);
  }
  void write(const std::string& program, const std::string& script) const {
    std::ofstream(directory.file(program)) << script;
    std::filesystem::permissions(directory.file(program), std::filesystem::perms::owner_all);
  }
  std::string arguments_of(const std::string& program) const {
    std::ifstream file(directory.file(program + ".arguments"));
    std::string line;
    std::getline(file, line);
    return line;
  }
  PeerRatiosConfig config(std::uint32_t rounds) const {
    return {.peer_dir = directory.path(),
            .model_paths = {bundled_model_path()},
            .prompt_tokens = 20,
            .decoded_tokens = 2,
            .rounds = rounds};
  }
  Error error() const { return error_of(config(1)); }
};

constexpr const char* kFile = "leasehold-stories-q8_0";

}  // namespace

TEST_CASE("peer ratios: a report has both medians, their ratio, the version and the format") {
  const FakePeer peer;
  const nlohmann::json report = testing::required(measure_peer_ratios(peer.config(3)));
  const nlohmann::json& all = report.at("peer");
  CHECK(all.at("version") == "fake (3)");
  CHECK(all.at("rounds") == 3);
  CHECK(all.at(kFile).at("format") == "shape Q8_0");
  const nlohmann::json& run = all.at(kFile).at("1_threads");
  CHECK(run.at("peer") ==
        nlohmann::json{{"decode", 20}, {"batch_8", 80}, {"batch_32", 320}, {"prefill", 1000}});
  for (const char* figure : {"decode", "batch_8", "batch_32", "prefill"}) {
    CAPTURE(figure);
    const double ours = run.at("ours").at(figure);
    CHECK(ours > 0);
    CHECK(run.at("ratio").at(figure) == ours / run.at("peer").at(figure).get<double>());
  }
  CHECK(peer_ratios_text(report).find("llama.cpp fake (3)") != std::string::npos);
}

TEST_CASE("peer ratios: the peer gets the same file, threads, prompt and batches") {
  const FakePeer peer;
  testing::required(measure_peer_ratios(peer.config(1)));
  CHECK(peer.arguments_of("llama-bench") ==
        "-m " + bundled_model_path() + " -t 1 -ngl 0 -p 20 -n 2 -r 1 -o jsonl");
  CHECK(peer.arguments_of("llama-batched-bench") ==
        "-m " + bundled_model_path() +
            " -t 1 -tb 1 -ngl 0 -c 4096 -npp 2 -ntg 2 -npl 8,32 --output-format jsonl");
}

TEST_CASE("peer ratios: a program that is missing, fails or prints no result is an error") {
  const FakePeer peer;
  SECTION("missing") {
    std::filesystem::remove(peer.directory.file("llama-batched-bench"));
    CHECK(peer.error().code == Errc::FileNotFound);
    CHECK(peer.error().detail.find("llama-batched-bench") != std::string::npos);
  }
  SECTION("fails") {
    peer.write("llama-bench", "#!/bin/sh\necho 'no such model' >&2\nexit 3\n");
    CHECK(peer.error().code == Errc::ConnectionLost);
    CHECK(peer.error().detail.find("llama-bench ended with 3") != std::string::npos);
    CHECK(peer.error().detail.find("no such model") != std::string::npos);
  }
  SECTION("prints no result") {
    peer.write("llama-batched-bench", "#!/bin/sh\necho hello\n");
    CHECK(peer.error().code == Errc::MalformedMessage);
  }
}

TEST_CASE("peer ratios: two files of one name, and a model that cannot be read, are errors") {
  const FakePeer peer;
  PeerRatiosConfig config = peer.config(1);
  config.model_paths.push_back("/elsewhere/leasehold-stories-q8_0.gguf");
  CHECK(error_of(config).code == Errc::BadRequest);
  config.model_paths = {"/nowhere.gguf"};
  CHECK(error_of(config).code == Errc::FileNotFound);
}

}  // namespace leasehold::bench
