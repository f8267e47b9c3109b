#include "tests/tidy/rules.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <regex>
#include <span>
#include <utility>

#include "tests/tidy/layers.hpp"

namespace leasehold::tidy {
namespace {

constexpr std::size_t kMaxLines = 400;
constexpr std::size_t kMaxSourcesInRoom = 40;

using PathTest = std::function<bool(std::string_view)>;

/// A text to search for. A match starts at a word boundary, and also ends at one if `whole`.
struct Pattern {
  std::string_view text;
  bool whole = false;
};

bool contains(std::string_view line, const Pattern& pattern) {
  for (auto at = line.find(pattern.text); at != std::string_view::npos;
       at = line.find(pattern.text, at + 1)) {
    const std::size_t end = at + pattern.text.size();
    const bool begins =
        !is_word_character(pattern.text.front()) || at == 0 || !is_word_character(line[at - 1]);
    const bool ends = !pattern.whole || end == line.size() || !is_word_character(line[end]);
    if (begins && ends) return true;
  }
  return false;
}

bool starts_with_any(std::string_view path, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return path.starts_with(prefix); });
}

bool is_any(std::string_view) {
  return true;
}

/// tests/checks has programs that run the system, which follow the rules of programs.
bool is_test(std::string_view path) {
  return path.starts_with("tests/") && !path.starts_with("tests/checks/");
}

/// Lines that `violates` accepts, in the files that `look_at` accepts.
Findings lines_where(const Sources& sources, const PathTest& look_at,
                     const std::function<bool(const SourceFile& file, std::size_t i)>& violates) {
  Findings findings;
  for (const SourceFile& file : sources) {
    if (!look_at(file.path)) continue;
    for (std::size_t i = 0; i < file.lines.size(); ++i) {
      if (violates(file, i)) findings.push_back({file.path, i + 1, file.lines[i]});
    }
  }
  return findings;
}

bool contains_any(std::string_view line, std::span<const Pattern> patterns) {
  return std::ranges::any_of(patterns, [&](const Pattern& n) { return contains(line, n); });
}

Findings code_matching(const Sources& sources, std::span<const Pattern> patterns,
                       const PathTest& look_at) {
  return lines_where(sources, look_at, [&](const SourceFile& file, std::size_t i) {
    return contains_any(file.code[i], patterns);
  });
}

/// The text between the quotes of `#include "…"`, or nothing.
std::string_view included_path(std::string_view line) {
  constexpr std::string_view kInclude = "#include \"";
  if (!line.starts_with(kInclude)) return {};
  line.remove_prefix(kInclude.size());
  return line.substr(0, line.find('"'));
}

/// A tool that uses a room of the worker.
struct ToolException {
  std::string_view tool;
  std::string_view room;
  std::string_view target;
  std::string_view reason;
};

constexpr std::array<ToolException, 1> kToolExceptions{
    {{"tools/tokenize/", "worker/text/tokenizer/", "leasehold::worker_tokenizer",
      "It prints the tokens that a worker makes of a text."}}};

struct Enumerator {
  std::string name;
  std::size_t line;
};

/// The enumerators of `enum class <name>` in one file.
std::vector<Enumerator> enumerators(const SourceFile& file, const std::string& name) {
  std::vector<Enumerator> found;
  bool inside = false;
  for (std::size_t i = 0; i < file.code.size(); ++i) {
    const std::string& line = file.code[i];
    if (!inside) {
      inside = line.starts_with("enum class " + name + " ");
      continue;
    }
    if (line.starts_with("};")) break;
    std::string word;
    for (const char c : line + ' ') {
      if (is_word_character(c))
        word += c;
      else if (!word.empty())
        found.push_back({std::exchange(word, {}), i + 1});
    }
  }
  return found;
}

/// Enumerators of `header` whose text `use(name)` is in no file that `look_at` accepts.
Findings enumerators_without(const Sources& sources, std::string_view header,
                             const std::string& enum_name,
                             const std::function<std::string(const std::string&)>& use,
                             const PathTest& look_at) {
  Findings findings;
  for (const SourceFile& file : sources) {
    if (file.path != header) continue;
    for (const Enumerator& enumerator : enumerators(file, enum_name)) {
      const std::string text = use(enumerator.name);
      if (code_matching(sources, std::array{Pattern{text, true}}, look_at).empty())
        findings.push_back({file.path, enumerator.line, "nowhere: " + text});
    }
  }
  return findings;
}

}  // namespace

Findings device_calls_outside_launcher(const Sources& sources) {
  constexpr std::array<Pattern, 9> kCalls{{{"cudaLaunch"},
                                           {"cudaMemcpy"},
                                           {"cudaMemset"},
                                           {"cuLaunch"},
                                           {"cuMemcpy"},
                                           {"cuMemset"},
                                           {"cudaGraphLaunch"},
                                           {"cuGraphLaunch"},
                                           {"<<<"}}};
  // The driver's table of entry points, the fake driver, the device agent's clear before memory is
  // lent, tests, and the program that checks a GPU.
  constexpr std::array<std::string_view, 8> kAllowed{"kernels/cuda/launcher",
                                                     "ipc/cuda/driver.",
                                                     "ipc/cuda/memory_cleaner.cpp",
                                                     "tests/checks/gpu_check/card.",
                                                     "tests/support/",
                                                     "tests/unit/",
                                                     "tests/contract/",
                                                     "tests/process/device/"};
  return code_matching(sources, kCalls, [&](std::string_view path) {
    return !starts_with_any(path, kAllowed) && !is_tidy(path);
  });
}

Findings handles_opened_outside_gate(const Sources& sources) {
  constexpr std::array<std::string_view, 3> kAllowed{
      "ipc/segment/leased.hpp", "ipc/segment/thread_gate.hpp", "ipc/region/mapping.hpp"};
  constexpr std::array<Pattern, 2> kOpenings{{{".address_", true}, {"->address_", true}}};
  return code_matching(sources, kOpenings, [&](std::string_view path) {
    return !starts_with_any(path, kAllowed) && !is_tidy(path) &&
           path != "tests/unit/ipc/segment/leased_test.cpp";  // checks that this does not compile
  });
}

Findings permits_outside_units(const Sources& sources) {
  constexpr auto kAllowed = std::to_array<std::string_view>(
      {"kernels/", "ipc/", "tests/", "worker/adapter/adapter_copy.",
       "worker/engine/leases/leased_records.", "worker/engine/propose/draft_proposer.",
       "worker/engine/stages/mask_preparation.", "worker/engine/stages/model_runner.",
       "worker/engine/token_drawer."});
  constexpr std::array<Pattern, 2> kHolding{{{"permit.open("}, {"LaunchPermit", true}}};
  return code_matching(sources, kHolding,
                       [&](std::string_view path) { return !starts_with_any(path, kAllowed); });
}

Findings plain_mappings_outside_ipc(const Sources& sources) {
  constexpr std::array<Pattern, 2> kMapping{{{"Mapping::map("}, {"mmap("}}};
  constexpr std::array<std::string_view, 3> kWithout{"broker/", "kernels/model/", "worker/"};
  return code_matching(sources, kMapping, [&](std::string_view path) {
    return starts_with_any(path, kWithout) &&
           !path.starts_with("kernels/model/gguf/");  // maps model files, not leased memory
  });
}

Findings layering_violations(const Sources& sources) {
  return lines_where(sources, is_any, [](const SourceFile& file, std::size_t i) {
    const std::string_view included = included_path(file.code[i]);
    const auto is_exception = [&](const ToolException& exception) {
      return file.path.starts_with(exception.tool) && included.starts_with(exception.room);
    };
    if (std::ranges::any_of(kToolExceptions, is_exception)) return false;
    return !included.empty() && !may_include(file.path, included);
  });
}

Findings tools_linking_rooms(const Sources& cmake_lists) {
  constexpr std::array<Pattern, 2> kRooms{{{"leasehold::worker_"}, {"leasehold::broker_"}}};
  const auto is_tool = [](std::string_view path) { return path.starts_with("tools/"); };
  return lines_where(cmake_lists, is_tool, [&](const SourceFile& file, std::size_t i) {
    std::string line = file.lines[i];
    for (const ToolException& exception : kToolExceptions) {
      if (!file.path.starts_with(exception.tool)) continue;
      if (const auto at = line.find(exception.target); at != std::string::npos)
        line.erase(at, exception.target.size());
    }
    return contains_any(line, kRooms);
  });
}

Findings files_too_long(const Sources& sources) {
  Findings findings;
  for (const SourceFile& file : sources) {
    if (file.lines.size() > kMaxLines)
      findings.push_back({file.path, kMaxLines + 1, std::to_string(file.lines.size()) + " lines"});
  }
  return findings;
}

Findings rooms_too_full(const Sources& sources) {
  std::map<std::string, std::size_t> sizes;
  for (const SourceFile& file : sources) {
    if (!file.path.starts_with("tests/")) ++sizes[file.path.substr(0, file.path.rfind('/'))];
  }
  Findings findings;
  for (const auto& [room, size] : sizes) {
    if (size > kMaxSourcesInRoom) findings.push_back({room, 0, std::to_string(size) + " sources"});
  }
  return findings;
}

Findings todo_markers(const Sources& sources) {
  constexpr std::array<Pattern, 4> kMarks{
      {{"TODO", true}, {"FIXME", true}, {"XXX", true}, {"HACK", true}}};
  return lines_where(sources, std::not_fn(is_tidy), [&](const SourceFile& file, std::size_t i) {
    return contains_any(file.lines[i], kMarks);
  });
}

Findings unreached_fault_sites(const Sources& sources) {
  return enumerators_without(
      sources, "common/fault_point.hpp", "FaultSite",
      [](const std::string& site) { return "fault_point(FaultSite::" + site; },
      std::not_fn(is_test));
}

Findings unused_launch_sites(const Sources& sources) {
  return enumerators_without(
      sources, "ipc/segment/launch_site.hpp", "LaunchSite",
      [](const std::string& site) { return "LaunchSite::" + site; },
      [](std::string_view path) {
        return path.starts_with("kernels/") || path.starts_with("worker/");
      });
}

Findings macros_other_than_try(const Sources& sources) {
  // CUDA keywords, lists of driver functions, and one list of templates that is declared in one
  // place and instantiated in another: only macros can express these.
  constexpr std::array<std::string_view, 6> kAllowed{
      "ipc/cuda/driver.",         "kernels/cuda/device/", "kernels/numerics/host_device.hpp",
      "tests/support/fake_cuda/", "tests/support/simt/",  "tools/cmake/external/"};
  const auto look_at = [&](std::string_view path) { return !starts_with_any(path, kAllowed); };
  return lines_where(sources, look_at, [](const SourceFile& file, std::size_t i) {
    std::string line = file.code[i];
    std::erase(line, ' ');
    return line.starts_with("#define") && !line.starts_with("#defineTRY(");
  });
}

Findings leaking_tries(const Sources& sources) {
  static const std::regex kLeak(R"((^|,)\s*\.\w+ = TRY\(|\bnew \w+.*\bTRY\()");
  return lines_where(sources, std::not_fn(is_tidy), [](const SourceFile& file, std::size_t i) {
    return file.code[i].contains("TRY(") && std::regex_search(file.code[i], kLeak);
  });
}

Findings throwing_prints(const Sources& sources) {
  constexpr std::array<Pattern, 3> kPrints{{{"fmt::print("}, {"std::print("}, {"std::println("}}};
  return code_matching(sources, kPrints, std::not_fn(is_test));
}

Findings sleeps_in_tests(const Sources& sources) {
  constexpr std::array<Pattern, 6> kSleeps{{{"sleep_for("},
                                            {"sleep_until("},
                                            {"usleep("},
                                            {"nanosleep("},
                                            {"sleep("},
                                            {"clock_nanosleep("}}};
  return code_matching(sources, kSleeps,
                       [](std::string_view path) { return is_test(path) && !is_tidy(path); });
}

}  // namespace leasehold::tidy
