#include "common/machine/text_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "tests/support/child_process.hpp"
#include "tests/support/temporary_directory.hpp"

using namespace leasehold;

namespace {

/// Writes the text to a file in the directory and returns its path.
std::string file_with(const TemporaryDirectory& directory, const std::string& text) {
  std::ofstream(directory.file("text"), std::ios::binary) << text;
  return directory.file("text");
}

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
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string text = std::string("a\0\r\n\xff", 5) + std::string(200'000, 'x');
  const std::string path = file_with(directory, text);
  CHECK(read_text_file(path, text.size()) == text);
  CHECK(refusal(read_text_file(path, text.size() - 1)) == Errc::MessageTooLarge);
  CHECK(read_text_file(file_with(directory, ""), 0) == "");
}

TEST_CASE("text file: a file of reported size 0 is read to its end") {
  const auto status = read_text_file("/proc/self/status", 1 << 20);
  REQUIRE(status);
  CHECK(status->starts_with("Name:"));
}

TEST_CASE("text file: a missing and a forbidden file have errors of their own") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string path = file_with(directory, "x");
  CHECK(refusal(read_text_file(directory.file("none"), 9)) == Errc::FileNotFound);
  CHECK(refusal(read_text_file(path + "/below", 9)) == Errc::FileNotFound);
  ::chmod(path.c_str(), 0);
  if (::geteuid() != 0) CHECK(refusal(read_text_file(path, 9)) == Errc::PermissionDenied);
}

TEST_CASE("text file: directories, devices and FIFOs are rejected") {
  const auto directory = TemporaryDirectory::create("test").value();
  const std::string fifo = directory.file("fifo");
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string& path : {directory.path().string(), std::string("/dev/zero"), fifo}) {
    CAPTURE(path);
    CHECK(refusal(read_text_file(path, 1 << 20)) == Errc::BadRequest);
  }
}

TEST_CASE("text file: stdin has a limit, and an unreadable stdin is an error") {
  CHECK(code_with_stdin("/dev/null", 0) == 0);
  CHECK(code_with_stdin("/dev/zero", 1 << 20) == exit_code(Errc::MessageTooLarge));
  CHECK(code_with_stdin("/", 9) == exit_code(Errc::SystemError));
}
