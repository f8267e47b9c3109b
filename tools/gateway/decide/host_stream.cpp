#include "tools/gateway/decide/host_stream.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "common/content_digest.hpp"
#include "common/utf8.hpp"

namespace leasehold::gateway {
namespace {

constexpr std::uint32_t kMaxRetryAfterMs = 24 * 60 * 60 * 1000;

/// Removes the first word and the space after it. The form has one space between words.
std::string_view take_word(std::string_view& text) {
  const std::size_t size = std::min(text.find(' '), text.size());
  const std::string_view word = text.substr(0, size);
  text.remove_prefix(std::min(size + 1, text.size()));
  return word;
}

/// Decimal digits alone, at most `most`.
std::optional<std::uint32_t> number_of(std::string_view word, std::uint32_t most) {
  std::uint32_t value = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc{} || end != word.data() + word.size() || value > most) return {};
  return value;
}

std::unexpected<Error> malformed(std::string_view line) {
  return fail(Errc::MalformedMessage,
              fmt::format("the line \"{}\" does not have the form of a continuable stream",
                          printable_excerpt(line)));
}

std::unexpected<Error> too_large(std::string_view what, std::size_t max_bytes) {
  return fail(Errc::MessageTooLarge, fmt::format("{} is larger than {} bytes", what, max_bytes));
}

}  // namespace

HostStreamParser::HostStreamParser(AnswerForm form, const HostStreamLimits& limits,
                                   const EmittedTokens& known)
    : form_(form), limits_(limits), next_positions_(limits.choices, 0) {
  if (form == AnswerForm::Document) {
    limits_.max_line_bytes = limits.max_document_bytes;
    limits_.max_ending_bytes = limits.max_document_bytes;
  }
  const std::size_t given = std::min<std::size_t>(known.size(), limits.choices);
  for (std::size_t i = 0; i < given; ++i)
    next_positions_[i] = static_cast<std::uint32_t>(known[i].size());
}

Result<void> HostStreamParser::read(std::string_view bytes, std::vector<HostEvent>& events) {
  while (!bytes.empty() && !has_ended_) {
    const std::size_t size = std::min(bytes.find('\n'), bytes.size());
    Result<void> done;
    if (line_.size() + size > limits_.max_line_bytes) {
      done = too_large("a line", limits_.max_line_bytes);
    } else if (size == bytes.size()) {
      line_ += bytes;
      return {};
    } else if (line_.empty()) {
      done = read_line(bytes.substr(0, size), events);
    } else {
      line_ += bytes.substr(0, size);
      done = read_line(std::exchange(line_, {}), events);
    }
    if (!done) {
      has_ended_ = true;
      return done;
    }
    bytes.remove_prefix(size + 1);
  }
  return {};
}

Result<void> HostStreamParser::read_line(std::string_view line, std::vector<HostEvent>& events) {
  if (line.empty()) return end_block(events);
  if (line.starts_with(':')) return read_comment(line);
  block_has_lines_ = true;
  return append(line);
}

/// Of the comments that are not marks, a keep-alive is one; clients do not need it.
Result<void> HostStreamParser::read_comment(std::string_view line) {
  std::string_view words = line;
  if (take_word(words) != ":") return {};
  const std::string_view kind = take_word(words);
  if (kind.size() != 1 || !std::string_view("tbaex").contains(kind)) return {};
  if (mark_ != Mark::None) {
    return fail(
        Errc::MalformedMessage,
        fmt::format("the mark \"{}\" is the second one of its block", printable_excerpt(line)));
  }
  Result<void> done;
  if (kind == "t") {
    done = read_token_mark(words);
  } else if (kind == "a") {
    done = read_adapter_mark(words);
  } else if (kind == "x") {
    done = read_error_mark(words);
  } else {
    if (!words.empty()) return malformed(line);
    mark_ = kind == "b" ? Mark::Beat : Mark::Ending;
  }
  return done;
}

Result<void> HostStreamParser::read_token_mark(std::string_view numbers) {
  const std::string_view all = numbers;
  constexpr auto kMaxToken = static_cast<std::uint32_t>(std::numeric_limits<TokenId>::max());
  const auto choice = number_of(take_word(numbers), std::numeric_limits<std::uint32_t>::max());
  const auto position = number_of(take_word(numbers), std::numeric_limits<std::uint32_t>::max());
  const auto token = number_of(take_word(numbers), kMaxToken);
  if (!choice || !position || !token || !numbers.empty())
    return malformed(fmt::format(": t {}", all));
  if (*choice >= limits_.choices) {
    return fail(Errc::MalformedMessage,
                fmt::format("a token is for choice {}, and the request has {} from 0", *choice,
                            limits_.choices));
  }
  if (*position != next_positions_[*choice]) {
    return fail(Errc::MalformedMessage,
                fmt::format("choice {} has a token at position {}, expected {}", *choice, *position,
                            next_positions_[*choice]));
  }
  marked_token_ = {
      .choice = *choice, .position = *position, .token = static_cast<TokenId>(*token), .bytes = {}};
  mark_ = Mark::Token;
  return {};
}

Result<void> HostStreamParser::read_adapter_mark(std::string_view words) {
  const std::string_view all = words;
  const auto choice = number_of(take_word(words), std::numeric_limits<std::uint32_t>::max());
  const std::string_view digest = take_word(words);
  const bool is_whole = choice && *choice < limits_.choices && words.empty();
  if (!is_whole || !ContentDigest::from_hex(digest)) return malformed(fmt::format(": a {}", all));
  marked_adapter_ = {.choice = *choice, .digest = std::string(digest)};
  mark_ = Mark::Adapter;
  return {};
}

/// A code that this version does not know comes from a later one; the detail keeps it.
Result<void> HostStreamParser::read_error_mark(std::string_view words) {
  const std::string_view all = words;
  const std::string_view code = take_word(words);
  const auto retry_after_ms = number_of(take_word(words), kMaxRetryAfterMs);
  if (code.empty() || !retry_after_ms || !words.empty())
    return malformed(fmt::format(": x {}", all));
  marked_error_ = Error{errc_from_name(code).value_or(Errc::SystemError),
                        fmt::format("the host ended the request with {}", printable_excerpt(code))};
  marked_error_.retry_after_ms = *retry_after_ms;
  mark_ = Mark::Failure;
  return {};
}

Result<void> HostStreamParser::append(std::string_view line) {
  if (group_.size() + line.size() + 2 > limits_.max_ending_bytes)
    return too_large("what follows a token", limits_.max_ending_bytes);
  group_.reserve(group_.size() + line.size() + 2);  // with the line's end and the block's
  group_ += line;
  group_ += '\n';
  return {};
}

Result<void> HostStreamParser::end_block(std::vector<HostEvent>& events) {
  if (std::exchange(block_has_lines_, false)) group_ += '\n';
  switch (std::exchange(mark_, Mark::None)) {
    case Mark::None:
      break;
    case Mark::Beat:
      events.emplace_back(Beat{});
      break;
    case Mark::Adapter:
      events.emplace_back(std::move(marked_adapter_));
      break;
    case Mark::Token:
      return end_group(events);
    case Mark::Ending:
      has_ended_ = true;
      return end_stream(events);
    case Mark::Failure:
      has_ended_ = true;
      if (form_ == AnswerForm::Document) group_ = document("error").value_or("");
      events.emplace_back(HostError{std::move(marked_error_), std::move(group_)});
      break;
  }
  return {};
}

Result<void> HostStreamParser::end_stream(std::vector<HostEvent>& events) {
  if (form_ == AnswerForm::Document) {
    std::optional<std::string> answer = document("answer");
    if (!answer) {
      return fail(Errc::MalformedMessage,
                  fmt::format("the stream ends with \"{}\", and not with one event \"answer\"",
                              printable_excerpt(group_)));
    }
    group_ = *std::move(answer);
  }
  events.emplace_back(EndingGroup{std::move(group_)});
  return {};
}

Result<void> HostStreamParser::end_group(std::vector<HostEvent>& events) {
  if (group_.size() > limits_.max_group_bytes) return too_large("a group", limits_.max_group_bytes);
  if (form_ == AnswerForm::Document && !group_.empty()) {
    return fail(Errc::MalformedMessage,
                "a token has an event, and the request asked for one document");
  }
  ++next_positions_[marked_token_.choice];
  marked_token_.bytes = std::exchange(group_, {});
  events.emplace_back(std::move(marked_token_));
  return {};
}

/// The data of the one event of a Document. Nothing for another form.
std::optional<std::string> HostStreamParser::document(std::string_view event) const {
  const std::string begin = fmt::format("event: {}\ndata: ", event);
  const std::string_view group = group_;
  if (!group.starts_with(begin) || !group.ends_with("\n\n")) return {};
  const std::string_view data = group.substr(begin.size(), group.size() - begin.size() - 2);
  if (data.contains('\n')) return {};
  return std::string(data);
}

}  // namespace leasehold::gateway
