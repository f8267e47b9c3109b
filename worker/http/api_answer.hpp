/// Writes the answers of `/v1/completions` and `/v1/chat/completions`: one object, or the chunks of
/// a stream. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "worker/http/api_request.hpp"

namespace leasehold::http {

struct UsageCount {
  std::uint32_t prompt_tokens = 0;
  std::uint32_t completion_tokens = 0;
};

class AnswerWriter {
 public:
  AnswerWriter(const ApiRequest& request, std::string model, std::int64_t created_unix_s);

  /// The answer to a request that does not stream.
  std::string whole(std::string_view text, std::string_view finish_reason, UsageCount usage) const;

  // Chunks, each one line of JSON.
  /// The role, before the first text of a chat; nothing for a completion.
  std::optional<std::string> opening() const;
  std::string text(std::string_view text, UsageCount so_far) const;
  std::string end(std::string_view text, std::string_view finish_reason, UsageCount usage) const;
  /// Nothing unless the request asked for it.
  std::optional<std::string> usage(UsageCount usage) const;

 private:
  std::string chunk(std::string_view text, std::optional<std::string_view> finish_reason,
                    std::optional<UsageCount> usage) const;

  bool is_chat_;
  bool include_usage_;
  bool continuous_usage_;
  std::string id_;
  std::string model_;
  std::int64_t created_;
};

/// "stop" or "length" for a CompletionReason.
std::string_view finish_reason(std::string_view completion_reason);

}  // namespace leasehold::http
