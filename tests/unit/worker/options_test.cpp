/// The command line of a worker.
#include "worker/options.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

namespace leasehold::options_test {
namespace {

WorkerOptions parse(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"leasehold-worker", "--broker", "b.sock", "--model",
                                       "m.gguf", "--listen", "w.sock"});
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  int exit_code = -1;
  auto options = parse_options(static_cast<int>(argv.size()), argv.data(), exit_code);
  REQUIRE(options);
  return *std::move(options);
}

}  // namespace

TEST_CASE("worker options: --numa is auto unless it is off") {
  CHECK(parse({}).spread_over_nodes);
  CHECK(parse({"--numa", "auto"}).spread_over_nodes);
  CHECK_FALSE(parse({"--numa", "off"}).spread_over_nodes);
}

}  // namespace leasehold::options_test
