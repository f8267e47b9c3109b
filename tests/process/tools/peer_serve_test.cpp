// leasehold-bench peer-serve: a real broker and worker beside a program that acts as llama-server.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

#include "common/cli/command_line.hpp"
#include "common/machine/temporary_directory.hpp"
#include "tests/process/tools/program_run.hpp"

using namespace leasehold;

namespace {

struct PeerServeRun {
  TemporaryDirectory directory = TemporaryDirectory::create("peer-serve").value();
  int exit_code = -1;
  std::string output, errors;

  explicit PeerServeRun(std::vector<std::string> more, const std::string& limits = "") {
    const std::string peer = directory.file("llama-server");
    std::filesystem::copy_file(source_dir() + "/tests/process/tools/fake_llama_server.py", peer);
    std::filesystem::permissions(peer, std::filesystem::perms::owner_all);
    std::vector<std::string> arguments = {"peer-serve",
                                          "--bin-dir",
                                          program_dir(),
                                          "--peer",
                                          directory.path(),
                                          "--model",
                                          bundled_model_path(),
                                          "--prompt-tokens",
                                          "8",
                                          "--generated-tokens",
                                          "4",
                                          "--rounds",
                                          "2",
                                          "--out",
                                          directory.file("report")};
    if (!limits.empty()) {
      std::ofstream(directory.file("limits.json")) << limits;
      more.insert(more.end(), {"--check", directory.file("limits.json")});
    }
    arguments.insert(arguments.end(), more.begin(), more.end());
    ProgramRun run("leasehold-bench", std::move(arguments));
    exit_code = run.finish([] {});
    output = run.output;
    errors = run.errors();
  }

  std::string text_of(const std::string& name) const {
    std::ifstream file(directory.file(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }
};

}  // namespace

TEST_CASE("peer serve: the report has both servers' figures, their ratios and the command line") {
  const PeerServeRun run(
      {"--streams", "1", "--streams", "3"},
      R"({"limits": [{"name": "peer_serve.3_streams.ratio.tokens_per_s", "min": 0}]})");
  CAPTURE(run.output, run.errors);
  REQUIRE(run.exit_code == kExitOk);
  const auto report = nlohmann::json::parse(run.text_of("report/peer-serve.json")).at("peer_serve");
  CHECK(report.at("version") == "fake 7");
  for (const std::uint32_t streams : {1u, 3u}) {
    const auto& one = report.at(std::to_string(streams) + "_streams");
    const std::string command = one.at("peer_command");
    const std::string slots = std::to_string(streams);
    CHECK(command.starts_with("llama-server -m " + bundled_model_path() + " -np " + slots + " -c " +
                              std::to_string(256 * streams) + " --host 127.0.0.1 --port "));
    CHECK(one.at("worker_options").get<std::string>().starts_with("--http 127.0.0.1:"));
    CHECK(one.at("worker_options").get<std::string>().find("--threads") == std::string::npos);
    for (const char* figure :
         {"tokens_per_s", "decode_tokens_per_s", "first_token_ms", "cpu_ms_per_token"}) {
      CAPTURE(figure);
      const double ours = one.at("ours").at(figure);
      CHECK(ours > 0);
      CHECK(one.at("ratio").at(figure) == ours / one.at("peer").at(figure).get<double>());
    }
  }
  CHECK(run.output.find("llama.cpp fake 7") != std::string::npos);
}

TEST_CASE("peer serve: a ratio beyond its limit is exit code 1") {
  const PeerServeRun run(
      {"--streams", "1"},
      R"({"limits": [{"name": "peer_serve.1_streams.ratio.tokens_per_s", "min": 1e9}]})");
  CHECK(run.exit_code == 1);
}

TEST_CASE("peer serve: a server that ends at its start is an error with the end of its log") {
  const PeerServeRun run({"--streams", "1", "--threads", "1"});
  CHECK(run.exit_code == exit_code(Errc::ConnectionLost));
  CHECK(run.errors.find("llama-server ended with 3") != std::string::npos);
  CHECK(run.errors.find("no threads here") != std::string::npos);
}
