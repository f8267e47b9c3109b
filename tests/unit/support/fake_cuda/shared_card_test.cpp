/// One card, several processes: memory is in use while any process references it, killed or not.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <string>

#include "common/machine/unique_fd.hpp"
#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

/// A child process; the destructor kills it.
class Peer {
 public:
  /// `variable` is added to the child's environment; without "=" it is removed.
  Peer(const std::string& what, int number, std::string variable = "NONE=0") {
    std::array<int, 2> to{};
    std::array<int, 2> from{};
    REQUIRE(::pipe2(to.data(), O_CLOEXEC) == 0);
    REQUIRE(::pipe2(from.data(), O_CLOEXEC) == 0);
    const std::string text = std::to_string(number);
    ::setenv("LD_LIBRARY_PATH", fake_cuda_directory(), 1);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(to[0], STDIN_FILENO);
      ::dup2(from[1], STDOUT_FILENO);
      ::putenv(variable.data());
      ::execl(FAKE_CUDA_PEER, FAKE_CUDA_PEER, what.c_str(), text.c_str(), nullptr);
      ::_exit(127);
    }
    ::close(to[0]);
    ::close(from[1]);
    keep_ = UniqueFd(to[1]);
    answer_ = UniqueFd(from[0]);
  }
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer() { kill_it(); }

  std::string answer() const {
    std::string line;
    for (char c = 0; ::read(answer_.get(), &c, 1) == 1 && c != '\n';) line += c;
    return line;
  }
  void kill_it() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_ = 0;
  UniqueFd keep_;
  UniqueFd answer_;
};

/// Allocates 2 MiB, stores their handle and returns their descriptor.
UniqueFd export_memory(const Card& card, CUmemGenericAllocationHandle& handle) {
  const auto prop = Card::memory();
  REQUIRE(card.driver().cuMemCreate(&handle, 2 * kMiB, &prop, 0) == CUDA_SUCCESS);
  int exported = -1;
  REQUIRE(card.driver().cuMemExportToShareableHandle(
              &exported, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0) == CUDA_SUCCESS);
  return UniqueFd(exported);
}

TEST_CASE("fake_cuda: memory of another process is free again after it was killed") {
  const Card card;
  const std::size_t before = card.free_bytes();
  Peer peer("create", 64);
  REQUIRE(peer.answer() == "done");
  CHECK(card.free_bytes() == before - 64 * kMiB);
  peer.kill_it();
  CHECK(card.free_bytes() == before);
}

TEST_CASE("fake_cuda: two processes together get no more than the card has") {
  const Card card;
  Peer first("create", 200);
  REQUIRE(first.answer() == "done");
  Peer second("create", 100);
  CHECK(second.answer() == "refused");
  CUmemGenericAllocationHandle handle = 0;
  const auto prop = Card::memory();
  CHECK(card.driver().cuMemCreate(&handle, 100 * kMiB, &prop, 0) == CUDA_ERROR_OUT_OF_MEMORY);
}

TEST_CASE("fake_cuda: exported memory lives as long as its last mapping") {
  const Card card;
  const std::size_t before = card.free_bytes();
  CUmemGenericAllocationHandle handle = 0;
  UniqueFd fd = export_memory(card, handle);
  UniqueFd inherited(::dup(fd.get()));
  Peer peer("import", inherited.get());
  inherited.reset();
  REQUIRE(peer.answer() == "done");

  std::uint32_t seen = 0;
  REQUIRE(::pread(fd.get(), &seen, sizeof seen, 0) == sizeof seen);
  CHECK(seen == 4711);
  REQUIRE(card.driver().cuMemRelease(handle) == CUDA_SUCCESS);
  fd.reset();
  CHECK(card.free_bytes() == before - 2 * kMiB);
  peer.kill_it();
  CHECK(card.free_bytes() == before);
}

TEST_CASE("fake_cuda: a descriptor in transit keeps the memory") {
  const Card card;
  const std::size_t before = card.free_bytes();
  CUmemGenericAllocationHandle handle = 0;
  UniqueFd fd = export_memory(card, handle);
  REQUIRE(card.driver().cuMemRelease(handle) == CUDA_SUCCESS);
  CHECK(card.free_bytes() == before - 2 * kMiB);
  fd.reset();
  CHECK(card.free_bytes() == before);
}

TEST_CASE("fake_cuda: a process without a shared state has its own card") {
  const Card card;
  const std::size_t before = card.free_bytes();
  Peer peer("again", 200, "FAKE_CUDA_STATE");
  REQUIRE(peer.answer() == "done");
  CHECK(card.free_bytes() == before);
}

TEST_CASE("fake_cuda: a driver without a card reports no device") {
  Peer peer("create", 2, "FAKE_CUDA_DEVICES=0");
  CHECK_THAT(peer.answer(), Catch::Contains("CUDA_ERROR_NO_DEVICE"));
}

}  // namespace
}  // namespace leasehold::fake_cuda
