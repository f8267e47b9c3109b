#include "tools/tenant/arguments.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <sstream>

#include "common/random.hpp"
#include "common/version.hpp"

namespace leasehold::tenant {
namespace {

struct CommandLine {
  CLI::App app{"Runs one prompt under a lease and streams the answer.", "leasehold-tenant"};
  std::string socket, tenant, worker, request_id, output = "text", prompt;
  CLI::Option* prompt_option = nullptr;
  SessionConfig config;
};

void describe_lease(CommandLine& line) {
  line.app.set_version_flag("--version", "leasehold-tenant " + std::string(version()));
  line.app.add_option("--tenant", line.tenant, "Who asks")->required();
  line.app.add_option("--socket", line.socket,
                      "The broker's socket; default: LEASEHOLD_BROKER, else "
                      "$XDG_RUNTIME_DIR/leasehold/broker.sock, else /run/leasehold/broker.sock");
  line.app.add_option("--worker", line.worker, "Only this worker");
  line.app.add_option("--blocks", line.config.blocks, "KV blocks wanted from the start")
      ->check(CLI::Range(0, 1 << 20));
  line.app.add_flag("--rebind", line.config.rebind,
                    "When the lease is taken back, go on under a fresh one");
}

void describe_request(CommandLine& line) {
  wire::Generate& request = line.config.request;
  line.prompt_option = line.app.add_option("--prompt", line.prompt, "Default: read from stdin");
  line.app.add_option("--max-tokens", request.max_emitted_tokens, "At most so many tokens")
      ->check(CLI::Range(1, 1 << 20));
  line.app.add_option("--temperature", request.sampling.temperature, "0 is greedy")
      ->check(CLI::Range(0.0, 100.0));
  line.app.add_option("--seed", request.sampling.seed,
                      "Chance depends on it and the position only");
  line.app.add_flag("--ignore-eos", request.ignore_eos, "Go on to --max-tokens");
  line.app.add_option("--request-id", line.request_id, "Minted when not given");
  line.app.add_option("-o,--output", line.output, "text, or json: one object per line")
      ->check(CLI::IsMember({"text", "json"}));
}

Result<Arguments> understand(const CommandLine& line) {
  Arguments arguments{.output = line.output == "json" ? Output::Json : Output::Text,
                      .prompt_from_stdin = line.prompt_option->count() == 0,
                      .config = line.config};
  SessionConfig& config = arguments.config;
  config.tenant = TRY(TenantId::parse(line.tenant));
  config.request.request_id =
      TRY(RequestId::parse(line.request_id.empty() ? mint_request_id() : line.request_id));
  if (!arguments.prompt_from_stdin) config.request.prompt = line.prompt;
  // A range check lets "nan" through, for it is on neither side of a bound.
  if (!std::isfinite(config.request.sampling.temperature)) {
    return fail(Errc::BadRequest, "--temperature must be a number");
  }
  if (!line.worker.empty()) config.worker = TRY(TenantId::parse(line.worker)).value;
  if (!line.socket.empty()) arguments.socket = line.socket;
  return arguments;
}

}  // namespace

std::expected<Arguments, Usage> parse_arguments(std::span<const std::string> arguments) {
  CommandLine line;
  describe_lease(line);
  describe_request(line);
  try {
    // CLI11 takes the words last first.
    line.app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    const int code = line.app.exit(error, text, text);
    return std::unexpected(Usage{.exit_code = code == 0 ? 0 : 2, .text = text.str()});
  }
  auto understood = understand(line);
  if (understood) return *std::move(understood);
  return std::unexpected(Usage{.text = fmt::format("{}\nRun with --help for more information.\n",
                                                   understood.error().detail)});
}

}  // namespace leasehold::tenant
