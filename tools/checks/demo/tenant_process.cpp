#include "tools/checks/demo/tenant_process.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace leasehold::demo {
namespace {

constexpr Duration kRound = std::chrono::milliseconds(20);
constexpr Duration kSilence = std::chrono::minutes(5);  // four prompts on a large model

}  // namespace

Result<std::unique_ptr<Player>> Player::start(const Stage& stage, const Actor& actor) {
  std::vector<std::string> argv{stage.program("leasehold-tenant"),
                                "--socket",
                                stage.broker_socket(),
                                "--tenant",
                                actor.name,
                                "--prompt",
                                actor.prompt,
                                "--temperature",
                                actor.temperature,
                                "--seed",
                                std::to_string(actor.seed),
                                "--max-tokens",
                                std::to_string(stage.settings().max_tokens),
                                "--ignore-eos",
                                "-o",
                                "json"};
  if (actor.rebind) argv.push_back("--rebind");
  auto child = TRY(Child::start({.argv = std::move(argv),
                                 .log_path = stage.directory() / ("tenant-" + actor.name + ".log"),
                                 .read_output = true}));
  return std::unique_ptr<Player>(new Player(actor, std::move(child)));
}

Result<void> Player::read() {
  std::array<char, 16 * 1024> bytes;
  const ssize_t got = ::read(child_.output().get(), bytes.data(), bytes.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got < 0) return fail_errno(Errc::SystemError, "read", errno);
  if (got == 0) record_.gone = true;
  lines_.append({bytes.data(), static_cast<std::size_t>(got)});
  while (const auto line = lines_.next()) TRY(note(record_, *line));
  return {};
}

Result<void> Player::kill() {
  return child_.signal(SIGKILL);
}

Result<void> listen(Stage& stage, const Players& players,
                    const std::function<Result<void>()>& after_each_round) {
  const SystemClock clock;
  TimePoint last_word = clock.now();
  while (true) {
    std::vector<int> outputs;
    for (const auto& player : players) {
      if (!player->is_over()) outputs.push_back(player->output());
    }
    if (outputs.empty()) return {};
    const auto ready = TRY(stage.patience().wait(outputs, kRound));
    for (const auto& player : players) {
      if (std::ranges::find(ready, player->output()) != ready.end()) TRY(player->read());
    }
    TRY(after_each_round());
    TRY(stage.check_alive());
    if (!ready.empty()) last_word = clock.now();
    if (clock.now() - last_word > kSilence) {
      return fail(Errc::TimedOut, "no tenant has told anything for 5 min");
    }
  }
}

}  // namespace leasehold::demo
