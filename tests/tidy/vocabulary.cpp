#include "tests/tidy/vocabulary.hpp"

#include <pcre2.h>

#include <sstream>
#include <stdexcept>

namespace leasehold::tidy {
namespace {

PCRE2_SPTR bytes_of(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, '\t');) fields.push_back(field);
  return fields;
}

}  // namespace

struct Vocabulary::Phrase {
  struct Free {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, Free> code;
  std::unique_ptr<pcre2_match_data, Free> match;
  std::string instead;

  /// The matched part of the text; empty if there is no match.
  std::string_view find(std::string_view text) const {
    if (pcre2_match(code.get(), bytes_of(text), text.size(), 0, 0, match.get(), nullptr) < 0)
      return {};
    const PCRE2_SIZE* range = pcre2_get_ovector_pointer(match.get());
    return text.substr(range[0], range[1] - range[0]);
  }
};

Vocabulary::Vocabulary(std::string_view text) {
  std::istringstream stream{std::string(text)};
  for (std::string line; std::getline(stream, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    const std::vector<std::string> fields = fields_of(line);
    if (fields.size() != 2)
      throw std::runtime_error("language.txt: not a pattern, a tab and words: " + line);
    add_phrase(fields[0], fields[1]);
  }
}

Vocabulary::~Vocabulary() = default;

std::size_t Vocabulary::size() const {
  return phrases_.size();
}

void Vocabulary::add_phrase(const std::string& pattern, const std::string& instead) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  Phrase phrase;
  phrase.code.reset(pcre2_compile(bytes_of(pattern), pattern.size(), PCRE2_CASELESS | PCRE2_UTF,
                                  &error, &offset, nullptr));
  phrase.instead = instead;
  if (phrase.code == nullptr)
    throw std::runtime_error("language.txt: the pattern does not compile: " + pattern);
  pcre2_jit_compile(phrase.code.get(), PCRE2_JIT_COMPLETE);
  phrase.match.reset(pcre2_match_data_create_from_pattern(phrase.code.get(), nullptr));
  phrases_.push_back(std::move(phrase));
}

Findings Vocabulary::banned_phrases(const Prose& prose) const {
  Findings findings;
  for (const Passage& passage : prose) {
    if (is_tidy(passage.path)) continue;
    for (const Phrase& phrase : phrases_) {
      const std::string_view found = phrase.find(passage.text);
      if (found.empty()) continue;
      findings.push_back({passage.path, passage.line,
                          "\"" + std::string(found) + "\": " + phrase.instead + "; " +
                              passage.text.substr(0, 120)});
    }
  }
  return findings;
}

}  // namespace leasehold::tidy
