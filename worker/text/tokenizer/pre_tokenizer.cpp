#include "worker/text/tokenizer/pre_tokenizer.hpp"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>
#include <array>

#include "common/expects.hpp"
#include "common/utf8.hpp"

namespace leasehold {
namespace {

/// Replaces \s and \S by the property White_Space, their meaning in the libraries that the
/// expressions were written for. PCRE2 also counts U+180E, as Unicode did before 6.3.
std::string with_unicode_spaces(std::string_view expression) {
  std::string result;
  for (std::size_t at = 0; at < expression.size(); ++at) {
    const std::string_view two = expression.substr(at, 2);
    if (two == "\\s" || two == "\\S") {
      result += two == "\\s" ? "\\p{White_Space}" : "\\P{White_Space}";
      ++at;
    } else if (two.starts_with('\\')) {
      result += two;
      ++at;
    } else {
      result += expression[at];
    }
  }
  return result;
}

std::string pcre2_message(int code) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

/// The length of the leading run of whole characters, or of other bytes.
std::size_t utf8_run_size(std::string_view text, bool characters) {
  std::size_t end = 0;
  while (end < text.size()) {
    const Utf8Step step = next_utf8(text.substr(end));
    if ((step.kind == Utf8Kind::Character) != characters) break;
    end += step.size_bytes;
  }
  return end;
}

/// Allows more steps than any expression in the table needs for a text of this length.
std::uint32_t match_limit(std::size_t size_bytes) {
  return static_cast<std::uint32_t>(
      std::min<std::size_t>(1000 + 16 * size_bytes, std::uint32_t{UINT32_MAX}));
}

}  // namespace

struct PreTokenizer::Matcher {
  Matcher(const Sink& words, std::size_t size_bytes)
      : sink(words),
        data(pcre2_match_data_create(1, nullptr), pcre2_match_data_free),
        context(pcre2_match_context_create(nullptr), pcre2_match_context_free) {
    if (context) pcre2_set_match_limit(context.get(), match_limit(size_bytes));
  }

  const Sink& sink;
  std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)> data;
  std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)> context;
};

void PreTokenizer::FreeCode::operator()(pcre2_real_code_8* code) const {
  pcre2_code_free(code);
}

Result<PreTokenizer> PreTokenizer::create(std::string name,
                                          std::span<const char* const> expressions) {
  PreTokenizer result;
  result.name_ = std::move(name);
  for (const char* expression : expressions) {
    const std::string pattern = with_unicode_spaces(expression);
    int error = 0;
    std::size_t offset = 0;
    pcre2_code* code =
        pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                      PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C, &error, &offset, nullptr);
    if (code == nullptr)
      return fail(Errc::UnsupportedModel,
                  fmt::format("pre-tokenizer {}: \"{}\" at {}: {}", result.name_, pattern, offset,
                              pcre2_message(error)));
    // A system may forbid machine code; PCRE2 then interprets the expression.
    (void)pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
    result.stages_.emplace_back(code);
  }
  return result;
}

Result<void> PreTokenizer::for_each_word(std::string_view text, const Sink& sink) const {
  Matcher matcher(sink, text.size());
  if (!matcher.data || !matcher.context)
    return fail(Errc::OutOfMemory, "out of memory while splitting a text into words");
  while (!text.empty()) {
    const std::size_t characters = utf8_run_size(text, true);
    if (characters > 0) TRY(split(text.substr(0, characters), 0, matcher));
    text.remove_prefix(characters);
    const std::size_t others = utf8_run_size(text, false);
    if (others > 0) sink(text.substr(0, others));
    text.remove_prefix(others);
  }
  return {};
}

Result<void> PreTokenizer::split(std::string_view text, std::size_t stage, Matcher& matcher) const {
  if (stage == stages_.size()) {
    matcher.sink(text);
    return {};
  }
  while (!text.empty()) {
    // Without this flag PCRE2 would validate the rest of the text again for every word.
    const int count =
        pcre2_match(stages_[stage].get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0,
                    PCRE2_NO_UTF_CHECK, matcher.data.get(), matcher.context.get());
    if (count == PCRE2_ERROR_NOMATCH) return split(text, stage + 1, matcher);
    if (count < 0)
      return fail(count == PCRE2_ERROR_NOMEMORY ? Errc::OutOfMemory : Errc::BadRequest,
                  fmt::format("pre-tokenizer {} gave up on a text of {} bytes: {}", name_,
                              text.size(), pcre2_message(count)));
    const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(matcher.data.get());
    const std::size_t start = bounds[0];
    const std::size_t end = bounds[1];
    ensures(end > start, "an expression of a pre-tokenizer matches at least one byte");
    if (start > 0) TRY(split(text.substr(0, start), stage + 1, matcher));
    TRY(split(text.substr(start, end - start), stage + 1, matcher));
    text.remove_prefix(end);
  }
  return {};
}

}  // namespace leasehold
