/// Cuts text into the words within which byte pairs may merge.
///
/// Every model names its way of cutting (`tokenizer.ggml.pre`): a sequence of regular expressions,
/// used as their makers published them. The first cuts the text into what it matches and what lies
/// between, the next one each of these pieces by itself, and so on. PCRE2 matches, compiled to
/// machine code where the system allows that.
/// Lifetime: independent. Threads: any number may use one.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/result.hpp"

struct pcre2_real_code_8;

namespace leasehold {

class PreTokenizer {
 public:
  /// Errors: UnsupportedModel for an expression that PCRE2 does not take.
  static Result<PreTokenizer> create(std::string name, std::span<const char* const> expressions);

  using Sink = std::function<void(std::string_view word)>;

  /// The words in order; together they are the text. Any bytes: a run of those that are not UTF-8
  /// is a word.
  /// Errors: BadRequest where a match steps back more often than a multiple of the text's length;
  /// OutOfMemory.
  Result<void> for_each_word(std::string_view text, const Sink& sink) const;

 private:
  struct FreeCode {
    void operator()(pcre2_real_code_8* code) const;
  };
  struct Matcher;

  PreTokenizer() = default;
  Result<void> split(std::string_view text, std::size_t stage, Matcher& matcher) const;

  std::string name_;
  std::vector<std::unique_ptr<pcre2_real_code_8, FreeCode>> stages_;
};

}  // namespace leasehold
