#include "tests/tidy/document_rules.hpp"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <optional>
#include <regex>
#include <sstream>

namespace leasehold::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxSentenceWords = 40;
constexpr std::size_t kMaxReadmeWords = 900;

std::size_t count_words(std::string_view text) {
  std::istringstream stream{std::string(text)};
  std::size_t words = 0;
  for (std::string word; stream >> word;)
    words += std::ranges::any_of(word, [](unsigned char c) { return std::isalnum(c); });
  return words;
}

/// A punctuation mark ends a sentence if a space or the end of the text follows.
bool ends_sentence(std::string_view text, std::size_t i) {
  const std::string_view marks = ".!?:;";
  return marks.contains(text[i]) && (i + 1 == text.size() || text[i + 1] == ' ');
}

std::optional<std::string> first_long_sentence(std::string_view text) {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool at_end = i + 1 == text.size();
    if (!at_end && !ends_sentence(text, i)) continue;
    const std::string_view sentence = text.substr(begin, i + 1 - begin);
    if (count_words(sentence) > kMaxSentenceWords) return std::string(sentence);
    begin = i + 1;
  }
  return std::nullopt;
}

/// The text of a call's last argument; `open` is the position of the opening parenthesis. Nothing
/// when the call has one argument or does not close within the text.
std::optional<std::string> last_argument(std::string_view code, std::size_t open) {
  int depth = 0;
  bool quoted = false;
  std::optional<std::size_t> comma;
  for (std::size_t i = open; i < code.size(); ++i) {
    const char c = code[i];
    if (quoted && c == '\\') ++i;
    if (c == '"') quoted = !quoted;
    if (quoted) continue;
    if (c == '(' || c == '{' || c == '[') ++depth;
    if (c == ')' || c == '}' || c == ']') --depth;
    if (c == ',' && depth == 1) comma = i;
    if (depth == 0)
      return comma ? std::optional(std::string(code.substr(*comma + 1, i - *comma - 1)))
                   : std::nullopt;
  }
  return std::nullopt;
}

/// The contents of all string literals in a piece of code, joined.
std::string quoted_text(std::string_view code) {
  std::string text;
  bool quoted = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (quoted && code[i] == '\\')
      text += code[++i];
    else if (code[i] == '"')
      quoted = !quoted;
    else if (quoted)
      text += code[i];
  }
  return text;
}

std::string joined_code(const SourceFile& file) {
  std::string code;
  for (const std::string& line : file.code) code += line + '\n';
  return code;
}

std::size_t line_at(std::string_view text, std::size_t position) {
  return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, position), '\n'));
}

/// The anchor that GitHub generates for a heading.
std::string anchor_of(std::string_view heading) {
  std::string anchor;
  for (const char c : heading) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) || c == '-' || c == '_' || byte >= 0x80)
      anchor += static_cast<char>(std::tolower(byte));
    else if (c == ' ')
      anchor += '-';
  }
  return anchor;
}

std::set<std::string> anchors_of(const SourceFile& file) {
  std::set<std::string> anchors;
  for (const std::string& line : file.lines) {
    if (!line.starts_with('#')) continue;
    const auto text = line.find_first_not_of("# ");
    if (text != std::string::npos) anchors.insert(anchor_of(std::string_view(line).substr(text)));
  }
  return anchors;
}

/// The targets of `[text](target)` in one line.
std::vector<std::string> link_targets(std::string_view line) {
  std::vector<std::string> targets;
  for (auto at = line.find("]("); at != std::string_view::npos; at = line.find("](", at + 2)) {
    const auto end = line.find(')', at);
    if (end != std::string_view::npos) targets.emplace_back(line.substr(at + 2, end - at - 2));
  }
  return targets;
}

bool leaves_the_tree(std::string_view target) {
  return target.find("://") != std::string_view::npos || target.starts_with("mailto:");
}

using Anchors = std::map<std::string, std::set<std::string>>;  // by path of the document

/// `target` is a link in the document `from`.
bool resolves(const fs::path& root, const Anchors& anchors, const std::string& from,
              const std::string& target) {
  const auto hash = target.find('#');
  const std::string file = target.substr(0, hash);
  const std::string path =
      file.empty() ? from
                   : (fs::path(from).parent_path() / file).lexically_normal().generic_string();
  if (!file.empty() && !fs::exists(root / path)) return false;
  const auto found = anchors.find(path);
  return hash == std::string::npos || found == anchors.end() ||
         found->second.contains(target.substr(hash + 1));
}

}  // namespace

Findings sentences_too_long(const Prose& prose) {
  Findings findings;
  for (const Passage& passage : prose) {
    if (const auto sentence = first_long_sentence(passage.text))
      findings.push_back({passage.path, passage.line,
                          std::to_string(count_words(*sentence)) + " words: " + *sentence});
  }
  return findings;
}

Findings help_lines_badly_written(const Sources& sources) {
  Findings findings;
  for (const SourceFile& file : sources) {
    const std::string code = joined_code(file);
    for (const std::string_view call : {"add_option(", "add_flag(", "add_subcommand("}) {
      for (auto at = code.find(call); at != std::string::npos; at = code.find(call, at + 1)) {
        const auto argument = last_argument(code, at + call.size() - 1);
        const std::string help = argument ? quoted_text(*argument) : "";
        if (help.empty()) continue;
        if (std::islower(static_cast<unsigned char>(help.front())) || help.ends_with('.'))
          findings.push_back({file.path, line_at(code, at), help});
      }
    }
  }
  return findings;
}

Findings readmes_too_long(const Sources& texts) {
  Findings findings;
  for (const SourceFile& file : texts) {
    if (!file.path.ends_with("README.md")) continue;
    std::size_t words = 0;  // as `wc -w` counts
    for (const std::string& line : file.lines) {
      std::istringstream stream(line);
      words +=
          static_cast<std::size_t>(std::distance(std::istream_iterator<std::string>(stream), {}));
    }
    if (words > kMaxReadmeWords)
      findings.push_back({file.path, 1, std::to_string(words) + " words"});
  }
  return findings;
}

Findings broken_links(const Sources& texts, const fs::path& root) {
  Anchors anchors;
  for (const SourceFile& file : texts) {
    if (is_markdown(file)) anchors[file.path] = anchors_of(file);
  }
  Findings findings;
  for (const SourceFile& file : texts) {
    if (!is_markdown(file)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      for (const std::string& target : link_targets(file.lines[i])) {
        if (!leaves_the_tree(target) && !resolves(root, anchors, file.path, target))
          findings.push_back({file.path, i + 1, "no such file or heading: " + target});
      }
    }
  }
  return findings;
}

namespace {

/// The names of all test cases: literals that continue on the next line are one name.
std::set<std::string> test_case_names(const Sources& sources) {
  static const std::regex test_case(
      R"re(TEST_CASE(?:_METHOD)?\((?:\w+,)?\s*((?:"(?:[^"\\]|\\.)*"\s*)+))re");
  std::set<std::string> names;
  for (const SourceFile& file : sources) {
    if (!file.path.starts_with("tests/") || is_tidy(file.path)) continue;
    const std::string code = joined_code(file);
    for (std::sregex_iterator found(code.begin(), code.end(), test_case), end; found != end;
         ++found)
      names.insert(quoted_text((*found)[1].str()));
  }
  return names;
}

bool names_test_case(const std::set<std::string>& names, std::string text) {
  if (!text.ends_with('*')) return names.contains(text);
  text.pop_back();
  const auto next = names.lower_bound(text);
  return next != names.end() && next->starts_with(text);
}

bool names_test_program(const Sources& sources, const std::string& word) {
  return std::ranges::any_of(sources, [&](const SourceFile& file) {
    const auto defines = [&](const std::string& line) {
      return line.starts_with("leasehold_test(" + word + " ");
    };
    return file.path.ends_with("CMakeLists.txt") && std::ranges::any_of(file.lines, defines);
  });
}

/// "| a | b |" → "b", trimmed; empty for a line that is not a row of a table.
std::optional<std::string> last_cell(const std::string& line) {
  if (!line.starts_with("|") || !line.ends_with("|")) return std::nullopt;
  const std::size_t bar = line.rfind('|', line.size() - 2);
  std::string cell = line.substr(bar + 1, line.size() - bar - 2);
  cell.erase(0, cell.find_first_not_of(' '));
  cell.erase(cell.find_last_not_of(' ') + 1);
  return cell;
}

std::vector<std::string> in_backticks(const std::string& cell) {
  std::vector<std::string> texts;
  std::istringstream parts(cell);
  std::string part;
  for (bool is_inside = false; std::getline(parts, part, '`'); is_inside = !is_inside)
    if (is_inside) texts.push_back(part);
  return texts;
}

}  // namespace

Findings missing_tests(const Sources& sources_and_texts, const fs::path& root) {
  const std::set<std::string> names = test_case_names(sources_and_texts);
  const auto exists = [&](const std::string& text) {
    if (text.contains(' ')) return names_test_case(names, text);
    return fs::exists(root / text) || fs::exists(root / "tests" / text) ||
           names_test_program(sources_and_texts, text);
  };
  Findings findings;
  for (const SourceFile& file : sources_and_texts) {
    if (!is_markdown(file)) continue;
    bool is_table_of_tests = false;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      const auto cell = last_cell(file.lines[i]);
      if (!cell) is_table_of_tests = false;
      if (cell == "test") is_table_of_tests = true;
      if (!cell || !is_table_of_tests || cell == "test" || cell == "---") continue;
      const auto tests = in_backticks(*cell);
      if (tests.empty() && !cell->contains("]("))
        findings.push_back({file.path, i + 1, "no test in the last column"});
      for (const std::string& test : tests)
        if (!exists(test)) findings.push_back({file.path, i + 1, "no such test: " + test});
    }
  }
  return findings;
}

}  // namespace leasehold::tidy
