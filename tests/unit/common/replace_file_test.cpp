#include "common/machine/replace_file.hpp"

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <filesystem>

#include "common/machine/text_file.hpp"
#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMaxBytes = 1 << 20;

std::size_t files_in(const TemporaryDirectory& directory) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(directory.path()), fs::directory_iterator{}));
}

}  // namespace

TEST_CASE("replace file: the file has the new text, and no other file remains") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string path = directory.file("text");
  for (const bool survives_power_cut : {true, false}) {
    for (const std::string& text : {std::string(200'000, 'x'), std::string("a\0b", 3)}) {
      REQUIRE(replace_file(path, text, {.survives_power_cut = survives_power_cut}));
      CHECK(read_text_file(path, kMaxBytes) == text);
      CHECK(files_in(directory) == 1);
    }
  }
}

TEST_CASE("replace file: the new file has the mode that was asked for, less the umask") {
  const auto directory = TemporaryDirectory::create("test").value();
  const auto mode_of = [&](const std::string& name) {
    return fs::status(directory.file(name)).permissions() & fs::perms::mask;
  };
  REQUIRE(replace_file(directory.file("secret"), "x"));
  CHECK(mode_of("secret") == fs::perms(0600));
  const mode_t before = ::umask(027);
  REQUIRE(replace_file(directory.file("shared"), "x", {.mode = 0644}));
  ::umask(before);
  CHECK(mode_of("shared") == fs::perms(0640));
}

TEST_CASE("replace file: a link is replaced, and the file behind it stays as it was") {
  const auto directory = TemporaryDirectory::create("test").value();
  REQUIRE(replace_file(directory.file("target"), "old"));
  fs::create_symlink(directory.file("target"), directory.file("link"));
  REQUIRE(replace_file(directory.file("link"), "new"));
  CHECK(read_text_file(directory.file("target"), kMaxBytes) == "old");
  CHECK(read_text_file(directory.file("link"), kMaxBytes) == "new");
  CHECK_FALSE(fs::is_symlink(directory.file("link")));
}

TEST_CASE("replace file: after a failure the old file remains and the new one does not") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string path = directory.file("text");
  REQUIRE(replace_file(path, "old"));
  const auto child = testing::run_in_child([&] {
    const rlimit limit{.rlim_cur = 1000, .rlim_max = 1000};
    ::signal(SIGXFSZ, SIG_IGN);
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto written = replace_file(path, std::string(2000, 'x'));
    return written ? 0 : exit_code(written.error().code);
  });
  CHECK(child.exit_code == exit_code(Errc::DiskFull));
  CHECK(read_text_file(path, kMaxBytes) == "old");
  CHECK(files_in(directory) == 1);

  fs::create_directory(directory.file("folder"));
  CHECK_FALSE(replace_file(directory.file("folder"), "x"));
  CHECK(files_in(directory) == 2);
  CHECK(replace_file(directory.file("none") + "/text", "x").error().code == Errc::FileNotFound);
}
