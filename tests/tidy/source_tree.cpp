#include "tests/tidy/source_tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <fstream>
#include <iterator>

namespace leasehold::tidy {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 7> kComponents{"broker", "common", "ipc",   "kernels",
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

/// Removes comments line by line. Recognises quoted text, but not raw strings.
class CommentStripper {
 public:
  std::string strip(std::string_view line) {
    std::string code;
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      const std::string_view two = line.substr(i, 2);
      if (in_block_) {
        if (two != "*/") continue;
        in_block_ = false;
        ++i;
      } else if (quote == 0 && two == "//") {
        break;
      } else if (quote == 0 && two == "/*") {
        in_block_ = true;
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

 private:
  /// A ' between digits separates them.
  static bool is_quote(std::string_view line, std::size_t i) {
    if (line[i] == '"') return true;
    return line[i] == '\'' && (i == 0 || !std::isalnum(static_cast<unsigned char>(line[i - 1])));
  }

  bool in_block_ = false;
};

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void read_component(const fs::path& root, std::string_view component, Sources& sources) {
  if (!fs::exists(root / component)) return;
  for (const auto& entry : fs::recursive_directory_iterator(root / component)) {
    const bool is_source =
        std::ranges::find(kExtensions, entry.path().extension().string()) != kExtensions.end();
    if (!entry.is_regular_file() || !is_source) continue;
    sources.push_back(make_source(entry.path().lexically_relative(root).generic_string(),
                                  content_of(entry.path())));
  }
}

}  // namespace

SourceFile make_source(std::string path, std::string_view text) {
  SourceFile file{.path = std::move(path), .lines = split_lines(text), .code = {}};
  CommentStripper stripper;
  for (const std::string& line : file.lines) file.code.push_back(stripper.strip(line));
  return file;
}

Sources read_sources(const std::filesystem::path& root) {
  Sources sources;
  for (const std::string_view component : kComponents) read_component(root, component, sources);
  std::ranges::sort(sources, {}, &SourceFile::path);
  return sources;
}

}  // namespace leasehold::tidy
