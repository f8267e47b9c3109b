// The rules, applied to this tree.
#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/support/test_paths.hpp"
#include "tests/tidy/check_none.hpp"
#include "tests/tidy/class_rules.hpp"
#include "tests/tidy/coroutine_rules.hpp"
#include "tests/tidy/kernel_rules.hpp"
#include "tests/tidy/rules.hpp"

using namespace leasehold::tidy;

namespace {

const Sources& tree() {
  static const Sources sources = read_sources(leasehold::source_dir());
  return sources;
}

bool tree_has(std::string_view path) {
  return std::ranges::any_of(tree(), [&](const SourceFile& file) { return file.path == path; });
}

}  // namespace

TEST_CASE("tidy: the tree was read") {
  CHECK(tree().size() > 100);
  for (const char* path :
       {"common/fault_point.hpp", "ipc/segment/launch_site.hpp", "ipc/segment/thread_gate.hpp",
        "kernels/backend.hpp", "tests/tidy/rules.cpp"})
    CHECK(tree_has(path));
}

TEST_CASE("tidy: the tree keeps every rule") {
  using Rule = Findings (*)(const Sources&);
  const auto [promise, rule] = GENERATE(table<const char*, Rule>({
      {"no kernel and no copy outside the door", device_calls_outside_launcher},
      {"only a permit opens a handle to leased memory", handles_opened_outside_gate},
      {"permits are held only where units run", permits_outside_units},
      {"broker and worker map nothing that could show leased bytes", plain_mappings_outside_ipc},
      {"includes follow the layers, from the root", layering_violations},
      {"no file is longer than 400 lines", files_too_long},
      {"no class exceeds its limits over all its files", classes_too_large},
      {"no room has more than 40 sources", rooms_too_full},
      {"nothing is marked as unfinished", todo_markers},
      {"every fault point is reached by some program", unreached_fault_sites},
      {"every launch site is used by a backend or the engine", unused_launch_sites},
      {"TRY is the one macro", macros_other_than_try},
      {"no TRY leaks members of a braced initialiser or the memory of a new", leaking_tries},
      {"no co_await is in a form that the compiler mistranslates", mistranslated_awaits},
      {"no program aborts because its output cannot be written", throwing_prints},
      {"no test sleeps", sleeps_in_tests},
      {"blocks exchange results through arrive only", protocols_between_blocks},
  }));
  CAPTURE(promise);
  check_none(rule(tree()));
}

TEST_CASE("tidy: no tool links a room of worker or broker") {
  const Sources cmake_lists = read_files(
      leasehold::source_dir(),
      [](const std::filesystem::path& path) { return path.filename() == "CMakeLists.txt"; });
  CHECK(cmake_lists.size() > 40);
  check_none(tools_linking_rooms(cmake_lists));
}
