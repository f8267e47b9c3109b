/// Splits text into words; byte pairs merge within a word only.
///
/// A model names its pre-tokenizer (`tokenizer.ggml.pre`): a sequence of regular expressions, used
/// as published. The first splits the text into its matches and the text between them; each
/// further expression splits every piece in the same way. PCRE2 compiles them to machine code if
/// the system allows it.
/// Lifetime: a value. Threads: any number at a time.
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
  /// Errors: UnsupportedModel for an expression that PCRE2 rejects.
  static Result<PreTokenizer> create(std::string name, std::span<const char* const> expressions);

  using Sink = std::function<void(std::string_view word)>;

  /// Calls `sink` for each word in order. The words together are the text, which may be any bytes:
  /// a run of bytes that are not UTF-8 is a word. Errors: BadRequest if a match backtracks more
  /// than a multiple of the text's length; OutOfMemory.
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
