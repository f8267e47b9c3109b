/// Completions that several streams request from one HTTP server at the same time, and their times.
#pragma once

#include <sys/types.h>

#include <boost/asio/io_context.hpp>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/clock.hpp"
#include "common/result.hpp"
#include "tests/checks/bench/engine_figures.hpp"
#include "worker/text/tokenizer/token_id.hpp"

namespace leasehold::bench {

/// A server with OpenAI's API on 127.0.0.1.
struct CompletionServer {
  std::uint16_t port = 0;
  std::string key;
  std::string model;
  std::vector<pid_t> processes = {};  ///< Processes whose CPU time is the server's.
};

using Prompts = std::vector<std::vector<TokenId>>;  // [streams]

/// Makes prompts of words. Among up to TenantPool::kPromptWords successive prompts no two begin
/// with the same word, so a cache of prompts has nothing to reuse. `first` is the number of prompts
/// made before.
Prompts make_prompts(std::uint32_t streams, std::uint32_t tokens, std::uint64_t first);

/// Times of one stream: `first` and `last` are its first and last event with a token count.
struct StreamTimes {
  TimePoint sent, first, last;
  std::uint32_t tokens = 0;  ///< Generated tokens.
};

/// "tokens_per_s": all tokens, from the first request that was sent to the last token.
/// "decode_tokens_per_s": the sum of the streams' own speeds from their first token on.
/// "first_token_ms" and "slowest_first_token_ms": from sending a request; median and maximum.
/// Preconditions: not empty; each stream has two tokens at different times.
Figures figures_of(std::span<const StreamTimes> streams);

/// Sends one request per prompt, each on a separate connection, and reads all answers.
/// Errors: ConnectionRefused, ConnectionLost; the server's refusal; MalformedMessage for an answer
/// without the number of generated tokens, with a number other than `tokens`, or in one event;
/// TimedOut after ten minutes.
Result<std::vector<StreamTimes>> run_round(boost::asio::io_context& io,
                                           const CompletionServer& server, const Prompts& prompts,
                                           std::uint32_t tokens);

}  // namespace leasehold::bench
