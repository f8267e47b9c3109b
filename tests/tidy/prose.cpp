#include "tests/tidy/prose.hpp"

#include <algorithm>
#include <iterator>
#include <optional>

namespace leasehold::tidy {
namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Collects the lines of one passage until `end`.
class PassageBuilder {
 public:
  explicit PassageBuilder(const std::string& path) : path_(path) {}

  void add(std::size_t line, std::string_view text) {
    if (open_.text.empty()) open_ = {path_, line, {}};
    if (!open_.text.empty()) open_.text += ' ';
    open_.text += text;
  }
  void end() {
    if (!open_.text.empty()) prose_.push_back(std::move(open_));
    open_ = {};
  }
  Prose take() {
    end();
    return std::move(prose_);
  }

 private:
  std::string path_;
  Passage open_;
  Prose prose_;
};

/// The comment after the code of a C++ line, without its slashes; nothing if there is none.
std::optional<std::string_view> cpp_comment(const SourceFile& file, std::size_t i) {
  std::string_view rest = file.lines[i];
  rest.remove_prefix(std::min(file.code[i].size(), rest.size()));
  if (!rest.starts_with("//")) return std::nullopt;
  rest.remove_prefix(std::min(rest.find_first_not_of('/'), rest.size()));
  if (rest.starts_with('<')) rest.remove_prefix(1);
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return rest;
}

std::optional<std::string_view> script_comment(std::string_view line) {
  line = trimmed(line);
  if (!line.starts_with('#') || line.starts_with("#!")) return std::nullopt;
  line.remove_prefix(std::min(line.find_first_not_of('#'), line.size()));
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

Prose comments_of_code(const SourceFile& file) {
  PassageBuilder passages(file.path);
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const auto comment = is_cpp(file.path) ? cpp_comment(file, i) : script_comment(file.lines[i]);
    const bool behind_code = is_cpp(file.path) && !trimmed(file.code[i]).empty();
    const bool is_text = comment && !comment->starts_with("  ") && !trimmed(*comment).empty();
    if (!is_text || behind_code) passages.end();
    if (is_text) passages.add(i + 1, trimmed(*comment));
  }
  return passages.take();
}

bool begins_item(std::string_view line) {
  if (line.starts_with("- ") || line.starts_with("* ") || line.starts_with('#')) return true;
  const auto digits = std::min(line.find_first_not_of("0123456789"), line.size());
  return digits > 0 && line.substr(digits).starts_with(". ");
}

/// Adds each cell of a table row as its own passage.
void add_row(PassageBuilder& passages, std::size_t line, std::string_view row) {
  while (!row.empty()) {
    const auto end = std::min(row.find('|'), row.size());
    const std::string_view cell = trimmed(row.substr(0, end));
    if (!cell.empty()) passages.add(line, cell);
    passages.end();
    row.remove_prefix(std::min(end + 1, row.size()));
  }
}

Prose paragraphs_of(const SourceFile& file) {
  PassageBuilder passages(file.path);
  bool in_fence = false;
  for (std::size_t i = 0; i < file.lines.size(); ++i) {
    const std::string_view line = trimmed(file.lines[i]);
    if (line.starts_with("```")) in_fence = !in_fence;
    const bool is_text = !in_fence && !line.starts_with("```") && !line.empty();
    if (!is_text || line.starts_with('|') || begins_item(line)) passages.end();
    if (!is_text) continue;
    if (line.starts_with('|'))
      add_row(passages, i + 1, line);
    else
      passages.add(i + 1, line);
  }
  return passages.take();
}

/// The contents of the string literals of one line of code, joined by spaces.
std::string literals_of(std::string_view code) {
  std::string text;
  bool inside = false;
  for (std::size_t i = 0; i < code.size(); ++i) {
    if (code[i] == '\\') {
      ++i;
    } else if (code[i] == '"') {
      if (inside) text += ' ';
      inside = !inside;
    } else if (inside) {
      text += code[i];
    }
  }
  return text;
}

bool is_script(const fs::path& path) {
  const std::string extension = path.extension().string();
  return extension == ".sh" || extension == ".py" || extension == ".cmake" ||
         path.filename() == "CMakeLists.txt" || extension.empty();
}

/// A file without an extension is a script only if it starts with `#!`.
bool is_other_file(const SourceFile& file) {
  return !fs::path(file.path).has_extension() &&
         (file.lines.empty() || !file.lines.front().starts_with("#!"));
}

bool is_data(std::string_view path) {
  return path.starts_with("tests/fuzz/corpus/") || path.starts_with("tests/data/") ||
         path.find("/__pycache__/") != std::string_view::npos;
}

}  // namespace

bool is_markdown(const SourceFile& file) {
  return file.path.ends_with(".md");
}

Sources read_texts(const fs::path& root) {
  Sources texts = read_files(root, [](const fs::path& path) {
    return (path.extension() == ".md" || is_script(path)) && !is_data(path.generic_string());
  });
  std::erase_if(texts, is_other_file);
  return texts;
}

Prose comments_of(const Sources& sources) {
  Prose prose;
  for (const SourceFile& file : sources) {
    Prose more = is_markdown(file) ? paragraphs_of(file) : comments_of_code(file);
    std::ranges::move(more, std::back_inserter(prose));
  }
  return prose;
}

Prose strings_of(const Sources& sources) {
  Prose prose;
  for (const SourceFile& file : sources) {
    if (!is_cpp(file.path)) continue;
    for (std::size_t i = 0; i < file.code.size(); ++i) {
      if (file.code[i].starts_with("#include")) continue;
      std::string text = literals_of(file.code[i]);
      if (!text.empty()) prose.push_back({file.path, i + 1, std::move(text)});
    }
  }
  return prose;
}

}  // namespace leasehold::tidy
