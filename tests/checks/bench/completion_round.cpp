#include "tests/checks/bench/completion_round.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "common/random.hpp"
#include "tests/checks/bench/sse_stream.hpp"
#include "tests/checks/bench/statistics.hpp"
#include "tests/checks/bench/tenant_pool.hpp"

namespace leasehold::bench {
namespace {

constexpr Duration kLongestRound = std::chrono::minutes(10);
constexpr auto kLoopTime = std::chrono::milliseconds(100);
constexpr std::uint64_t kPromptSeed = 30;

double seconds_between(TimePoint from, TimePoint to) {
  return static_cast<double>((to - from).count()) / 1e9;
}

/// The number of generated tokens, if the event has the usage.
std::optional<std::uint32_t> tokens_in(std::string_view event) {
  const auto json = nlohmann::json::parse(event, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto usage = json.find("usage");
  if (usage == json.end() || !usage->is_object()) return std::nullopt;
  const auto tokens = usage->find("completion_tokens");
  if (tokens == usage->end() || !tokens->is_number_unsigned()) return std::nullopt;
  return tokens->get<std::uint32_t>();
}

/// One request. The connection ends with the request or before.
class RoundStream {
 public:
  RoundStream() = default;
  RoundStream(const RoundStream&) = delete;
  RoundStream& operator=(const RoundStream&) = delete;
  ~RoundStream() {
    if (stream_) stream_->close();
  }

  Result<void> open(boost::asio::io_context& io, const CompletionServer& server,
                    const std::vector<TokenId>& prompt, std::uint32_t tokens) {
    StreamSocket socket = TRY(connect_to_port(io, server.port));
    stream_ = SseStream::over(std::move(socket),
                              {.on_token = [this] { note_token(); },
                               .on_end = [this](Result<void> how) { ended_ = std::move(how); },
                               .on_other =
                                   [this](std::string_view event) {
                                     if (const auto n = tokens_in(event)) times_.tokens = *n;
                                   }});
    times_.sent = clock_.now();
    stream_->send(sse_request({.key = server.key,
                               .model = server.model,
                               .prompt = prompt,
                               .max_tokens = tokens,
                               .include_usage = true}));
    return {};
  }

  bool has_ended() const { return ended_.has_value(); }
  Result<StreamTimes> times(std::uint32_t expected_tokens) const {
    TRY(*ended_);
    if (times_.tokens != expected_tokens)
      return fail(Errc::MalformedMessage,
                  fmt::format("an answer has {} tokens, not {}; use a server that continues after "
                              "an end token and reports the usage",
                              times_.tokens, expected_tokens));
    if (times_.last > times_.first) return times_;
    return fail(Errc::MalformedMessage, "an answer came in one event; generate more tokens");
  }

 private:
  void note_token() {
    times_.last = clock_.now();
    if (times_.first == TimePoint{}) times_.first = times_.last;
  }

  SystemClock clock_;
  StreamTimes times_;
  std::optional<Result<void>> ended_;
  std::shared_ptr<SseStream> stream_;
};

Result<std::vector<StreamTimes>> await_all(boost::asio::io_context& io,
                                           const std::vector<RoundStream>& streams,
                                           std::uint32_t tokens) {
  const SystemClock clock;
  const TimePoint deadline = clock.now() + kLongestRound;
  while (!std::ranges::all_of(streams, &RoundStream::has_ended)) {
    io.restart();
    io.run_one_for(kLoopTime);
    if (clock.now() > deadline)
      return fail(Errc::TimedOut, "completions take more than ten minutes; use a smaller model");
  }
  std::vector<StreamTimes> times;
  for (const RoundStream& stream : streams) times.push_back(TRY(stream.times(tokens)));
  return times;
}

}  // namespace

Prompts make_prompts(std::uint32_t streams, std::uint32_t tokens, std::uint64_t first) {
  Prompts prompts;
  const auto word = [](std::uint64_t number) {
    return TenantPool::kFirstPromptToken + static_cast<TokenId>(number % TenantPool::kPromptWords);
  };
  for (std::uint64_t i = first; i < first + streams; ++i) {
    prompts.push_back({word(i)});
    while (prompts.back().size() < tokens)
      prompts.back().push_back(word(random_at(kPromptSeed + i, prompts.back().size())));
  }
  return prompts;
}

Figures figures_of(std::span<const StreamTimes> streams) {
  TimePoint begin = streams.front().sent;
  TimePoint end = streams.front().last;
  std::uint64_t tokens = 0;
  double decode = 0;
  std::vector<double> first_token_ms;
  for (const StreamTimes& stream : streams) {
    begin = std::min(begin, stream.sent);
    end = std::max(end, stream.last);
    tokens += stream.tokens;
    decode += (stream.tokens - 1) / seconds_between(stream.first, stream.last);
    first_token_ms.push_back(1e3 * seconds_between(stream.sent, stream.first));
  }
  return {{"tokens_per_s", static_cast<double>(tokens) / seconds_between(begin, end)},
          {"decode_tokens_per_s", decode},
          {"first_token_ms", median_of(first_token_ms)},
          {"slowest_first_token_ms", std::ranges::max(first_token_ms)}};
}

Result<std::vector<StreamTimes>> run_round(boost::asio::io_context& io,
                                           const CompletionServer& server, const Prompts& prompts,
                                           std::uint32_t tokens) {
  std::vector<RoundStream> streams(prompts.size());
  for (std::size_t i = 0; i < prompts.size(); ++i)
    TRY(streams[i].open(io, server, prompts[i], tokens));
  return await_all(io, streams, tokens);
}

}  // namespace leasehold::bench
