#include "tests/tidy/source_tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>

namespace leasehold::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kRooms{"broker", "common", "ipc",   "kernels",
                                                 "tests",  "tools",  "worker"};
constexpr std::array<std::string_view, 6> kExtensions{".hpp", ".cpp", ".cu", ".cuh", ".h", ".inc"};

std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// A ' between digits separates them.
bool is_quote(std::string_view line, std::size_t i) {
  if (line[i] == '"') return true;
  return line[i] == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(line[i - 1])));
}

/// The line without comments. `in_block`: inside of a block comment; updated for the next line.
/// Recognises quoted text, but not raw strings.
std::string code_of(std::string_view line, bool& in_block) {
  std::string code;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const std::string_view two = line.substr(i, 2);
    if (in_block) {
      if (two != "*/") continue;
      in_block = false;
      ++i;
    } else if (quote == 0 && two == "//") {
      break;
    } else if (quote == 0 && two == "/*") {
      in_block = true;
      ++i;
    } else {
      code += line[i];
      if (quote != 0 && line[i] == '\\' && i + 1 < line.size())
        code += line[++i];
      else if (quote == line[i])
        quote = 0;
      else if (quote == 0 && is_quote(line, i))
        quote = line[i];
    }
  }
  return code;
}

}  // namespace

SourceFile make_source(std::string path, std::string_view text) {
  SourceFile file{.path = std::move(path), .lines = split_lines(text)};
  bool in_block = false;
  for (const std::string& line : file.lines) file.code.push_back(code_of(line, in_block));
  return file;
}

std::string read_text(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Sources read_files(const fs::path& root, const std::function<bool(const fs::path&)>& is_wanted) {
  Sources files;
  const auto add = [&](const fs::directory_entry& entry) {
    const fs::path path = entry.path().lexically_relative(root);
    if (entry.is_regular_file() && is_wanted(path))
      files.push_back(make_source(path.generic_string(), read_text(entry.path())));
  };
  for (const auto& entry : fs::directory_iterator(root)) add(entry);
  for (const std::string_view room : kRooms) {
    if (!fs::exists(root / room)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / room)) add(entry);
  }
  std::ranges::sort(files, {}, &SourceFile::path);
  return files;
}

Sources read_sources(const fs::path& root) {
  return read_files(root, [](const fs::path& path) { return is_cpp(path.native()); });
}

bool is_cpp(std::string_view path) {
  return std::ranges::any_of(kExtensions, [&](auto end) { return path.ends_with(end); });
}

bool is_word_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_';
}

bool is_tidy(std::string_view path) {
  return path.starts_with("tests/tidy/");
}

}  // namespace leasehold::tidy
