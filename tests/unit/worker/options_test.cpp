/// The command line of a worker.
#include "worker/options.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace leasehold::options_test {
namespace {

std::optional<WorkerOptions> parsed(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"leasehold-worker", "--broker", "b.sock", "--model",
                                       "m.gguf", "--listen", "w.sock"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int exit_code = -1;
  auto options = parse_options(static_cast<int>(argv.size()), argv.data(), exit_code);
  CHECK((options || exit_code != 0));
  return options;
}

WorkerOptions parse(std::vector<std::string> arguments) {
  auto options = parsed(std::move(arguments));
  REQUIRE(options);
  return *std::move(options);
}

}  // namespace

TEST_CASE("worker options: --numa is auto unless it is off") {
  CHECK(parse({}).spread_over_nodes);
  CHECK(parse({"--numa", "auto"}).spread_over_nodes);
  CHECK_FALSE(parse({"--numa", "off"}).spread_over_nodes);
}

TEST_CASE("worker options: --name-as has one-line names, each once") {
  using Names = std::vector<std::string>;
  CHECK(parse({}).model_names.empty());
  CHECK(parse({"--name-as", "org/Chat 7B", "--name-as", "chät"}).model_names ==
        Names{"org/Chat 7B", "chät"});
  CHECK(parse({"--name-as", "a", "b"}).model_names == Names{"a", "b"});
  CHECK(parse({"--name-as", std::string(256, 'm')}).model_names.size() == 1);
  for (const Names& wrong :
       {Names{""}, Names{"a\nb"}, Names{std::string(257, 'm')}, Names{"a", "b", "a"}, Names{" a"},
        Names{"a "}, Names{"sha256:0123456789"}, Names{"a\xFF"}, Names{"a\u202Eb"}}) {
    Names arguments;
    for (const std::string& name : wrong) arguments.insert(arguments.end(), {"--name-as", name});
    CAPTURE(wrong);
    CHECK_FALSE(parsed(arguments));
  }
  Names many;
  for (int i = 0; i < 17; ++i) many.insert(many.end(), {"--name-as", std::to_string(i)});
  CHECK_FALSE(parsed(many));
  many.resize(32);
  CHECK(parse(many).model_names.size() == 16);
}

TEST_CASE("worker options: --adapters takes a directory, and ranks have a limit") {
  CHECK(parse({}).adapters_dir.empty());
  CHECK(parse({}).max_adapter_rank == 64);
  const WorkerOptions options = parse({"--adapters", "/tmp", "--max-adapter-rank", "16"});
  CHECK(options.adapters_dir == "/tmp");
  CHECK(options.max_adapter_rank == 16);
  CHECK_FALSE(parsed({"--adapters", ""}));
  CHECK_FALSE(parsed({"--max-adapter-rank", "0"}));
  CHECK_FALSE(parsed({"--max-adapter-rank", "513"}));
}

TEST_CASE("worker options: --batch-dir needs --http, and takes a quota and an age") {
  CHECK(parse({}).batch_dir.empty());
  CHECK_FALSE(parsed({"--batch-dir", "/tmp/b"}));
  const WorkerOptions options = parse({"--batch-dir", "/tmp/b", "--http", "127.0.0.1:0",
                                       "--batch-quota", "3MiB", "--batch-keep-hours", "2"});
  CHECK(options.batch_dir == "/tmp/b");
  CHECK(options.batch_limits.quota_bytes == 3 << 20);
  CHECK(options.batch_limits.max_age_s == 7'200);
  CHECK_FALSE(parsed({"--batch-dir", "/tmp/b", "--http", "127.0.0.1:0", "--batch-quota", "1"}));
}

}  // namespace leasehold::options_test
