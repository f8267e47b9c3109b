#include "common/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>

#include "tests/support/child_process.hpp"

using namespace leasehold;

namespace {

namespace fs = std::filesystem;

/// A temporary directory, removed with the object.
struct Scratch {
  fs::path root;
  Scratch() {
    std::string pattern = fs::temp_directory_path() / "leasehold-text-XXXXXX";
    root = ::mkdtemp(pattern.data());
  }
  ~Scratch() { fs::remove_all(root); }

  std::string file(const std::string& text) const {
    std::ofstream(root / "text", std::ios::binary) << text;
    return root / "text";
  }
};

Errc refusal(const Result<std::string>& text) {
  REQUIRE_FALSE(text);
  return text.error().code;
}

/// The error code of a child that has `path` as its stdin; -1 when the text was read.
int code_with_stdin(const char* path, std::size_t max_bytes) {
  return testing::run_in_child([=] {
           ::dup2(::open(path, O_RDONLY | O_CLOEXEC), STDIN_FILENO);
           const auto text = read_text_stdin(max_bytes);
           return text ? 0 : exit_code(text.error().code);
         })
      .exit_code;
}

}  // namespace

TEST_CASE("text file: every byte is read, up to the limit and no further") {
  const Scratch scratch;
  const std::string text = std::string("a\0\r\n\xff", 5) + std::string(200'000, 'x');
  const std::string path = scratch.file(text);
  CHECK(read_text_file(path, text.size()) == text);
  CHECK(refusal(read_text_file(path, text.size() - 1)) == Errc::MessageTooLarge);
  CHECK(read_text_file(scratch.file(""), 0) == "");
}

TEST_CASE("text file: a file of reported size 0 is read to its end") {
  const auto status = read_text_file("/proc/self/status", 1 << 20);
  REQUIRE(status);
  CHECK(status->starts_with("Name:"));
}

TEST_CASE("text file: a missing and a forbidden file have errors of their own") {
  const Scratch scratch;
  const std::string path = scratch.file("x");
  CHECK(refusal(read_text_file(scratch.root / "none", 9)) == Errc::FileNotFound);
  CHECK(refusal(read_text_file(path + "/below", 9)) == Errc::FileNotFound);
  ::chmod(path.c_str(), 0);
  if (::geteuid() != 0) CHECK(refusal(read_text_file(path, 9)) == Errc::PermissionDenied);
}

TEST_CASE("text file: directories, devices and FIFOs are rejected") {
  const Scratch scratch;
  const std::string fifo = scratch.root / "fifo";
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string& path : {scratch.root.string(), std::string("/dev/zero"), fifo}) {
    CAPTURE(path);
    CHECK(refusal(read_text_file(path, 1 << 20)) == Errc::BadRequest);
  }
}

TEST_CASE("text file: stdin has a limit, and an unreadable stdin is an error") {
  CHECK(code_with_stdin("/dev/null", 0) == 0);
  CHECK(code_with_stdin("/dev/zero", 1 << 20) == exit_code(Errc::MessageTooLarge));
  CHECK(code_with_stdin("/", 9) == exit_code(Errc::SystemError));
}
