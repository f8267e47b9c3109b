#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "common/utf8.hpp"
#include "tests/checks/demo/check_groups.hpp"

namespace leasehold::demo {
namespace {

/// The replacement character that decoders write for invalid UTF-8.
constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
/// The beginning of control tokens in every common template, such as <|im_end|>.
constexpr std::string_view kMarker = "<|";

/// The end of the text, for a reader of the report.
std::string end_of(std::string_view text) {
  constexpr std::size_t kShown_bytes = 40;
  std::string_view end = text.substr(text.size() - std::min(text.size(), kShown_bytes));
  while (!end.empty() && !is_utf8(end)) end.remove_prefix(1);
  return fmt::format("{} bytes, the last are {}", text.size(), wire::Json(end).dump());
}

Check reads_like_text(const TenantResult& result) {
  const std::string& text = result.observed.text;
  return {.promise = fmt::format("{}'s answer is text without control tokens", result.spec.name),
          .ok = !text.empty() && is_utf8(text) && text.find(kReplacement) == text.npos &&
                text.find(kMarker) == text.npos,
          .seen = end_of(text)};
}

/// Checks that the chat ended by itself or at the limit.
Check ended_as_asked(const TenantResult& result) {
  const std::string end = result.observed.completed.value_or("no end");
  return {
      .promise = fmt::format("{}'s answer ends with the model's end token or at the token limit",
                             result.spec.name),
      .ok = end == "EndOfSequence" || end == "MaxTokensReached",
      .seen = end};
}

Check answers(const TenantResult& result) {
  const bool found = result.observed.text.find(result.spec.expects) != std::string::npos;
  return {
      .promise = fmt::format("{}'s answer contains \"{}\"", result.spec.name, result.spec.expects),
      .ok = found,
      .seen = found ? "it does" : "it does not"};
}

}  // namespace

void check_answers(const Observation& seen, std::vector<Check>& checks) {
  for (const TenantResult& result : seen.results) {
    if (!result.spec.chat) continue;
    checks.push_back(reads_like_text(result));
    if (result.spec.name == seen.killed) continue;
    checks.push_back(ended_as_asked(result));
    if (!result.spec.expects.empty()) checks.push_back(answers(result));
  }
}

}  // namespace leasehold::demo
