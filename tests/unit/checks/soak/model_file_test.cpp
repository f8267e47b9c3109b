// The changes that the soak makes to a worker's model file, and the pipe that takes its log.
#include "tests/checks/soak/models/model_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <filesystem>

#include "tests/checks/soak/models/log_pipe.hpp"
#include "tests/support/temporary_directory.hpp"

namespace leasehold::soak {
namespace {

using Bytes = std::vector<std::byte>;

ino_t inode_of(const std::string& path) {
  struct stat status{};
  REQUIRE(::stat(path.c_str(), &status) == 0);
  return status.st_ino;
}

}  // namespace

TEST_CASE("model file: each change leaves the bytes and the inode that its name promises") {
  const auto directory = TemporaryDirectory::create("model-file").value();
  const Bytes original(1000, std::byte{5});
  auto file = ModelFile::create(directory.file("m.gguf"), original).value();
  const ino_t first = inode_of(file.path());

  REQUIRE(file.rewrite());
  CHECK(inode_of(file.path()) == first);
  CHECK(read_bytes(file.path()).value() != original);
  CHECK_FALSE(file.is_whole());

  REQUIRE(file.copy());
  CHECK(inode_of(file.path()) != first);
  CHECK(read_bytes(file.path()).value() == original);
  CHECK(file.is_whole());

  REQUIRE(file.replace());
  CHECK(read_bytes(file.path()).value().size() == original.size());
  CHECK(read_bytes(file.path()).value() != original);

  REQUIRE(file.truncate());
  CHECK(std::filesystem::file_size(file.path()) == 500);

  REQUIRE(file.remove());
  CHECK_FALSE(std::filesystem::exists(file.path()));
  CHECK_FALSE(file.is_whole());
}

TEST_CASE("log pipe: a stopped reader takes nothing until its steps are over") {
  const auto directory = TemporaryDirectory::create("log-pipe").value();
  const std::string path = directory.file("log");
  auto pipe = LogPipe::create(path).value();
  const UniqueFd writer(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  REQUIRE(::write(writer.get(), "line\n", 5) == 5);

  pipe.stop(1);
  pipe.read();
  CHECK(std::filesystem::file_size(path + ".read") == 0);
  pipe.count_step();
  pipe.read();
  CHECK(std::filesystem::file_size(path + ".read") == 5);
}

}  // namespace leasehold::soak
