/// The driver's lock, and host memory that is registered one mapping at a time.
#include <sys/mman.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "tests/support/child_process.hpp"
#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

constexpr std::size_t kPage = 4096;

/// Pages of the process. A test may protect or unmap some of them.
class Pages {
 public:
  explicit Pages(std::size_t n)
      : size_bytes_(n * kPage),
        at_(::mmap(nullptr, size_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
                   0)) {
    REQUIRE(at_ != MAP_FAILED);
  }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { ::munmap(at_, size_bytes_); }

  std::byte* page(std::size_t i) const { return static_cast<std::byte*>(at_) + i * kPage; }
  void protect(std::size_t i, int access) const {
    REQUIRE(::mprotect(page(i), kPage, access) == 0);
  }

 private:
  std::size_t size_bytes_;
  void* at_;
};

}  // namespace

TEST_CASE("fake_cuda: a call that keeps the driver's lock stops the calls of all threads") {
  Card card;
  fake_cuda_hold_calls("cuMemGetInfo");
  CHECK(card.append(1) == CUDA_SUCCESS);  // nothing keeps the lock yet
  std::atomic<int> returned{0};
  std::jthread keeper([&] {
    std::size_t free = 0;
    std::size_t total = 0;
    REQUIRE(card.driver().cuCtxSetCurrent(card.context()) == CUDA_SUCCESS);
    REQUIRE(card.driver().cuMemGetInfo(&free, &total) == CUDA_SUCCESS);
    ++returned;
  });
  CHECK(eventually([] { return fake_cuda_held_calls() == 1; }));
  std::jthread other([&] {
    REQUIRE(card.driver().cuCtxSetCurrent(card.context()) == CUDA_SUCCESS);
    ++returned;
  });
  CHECK(eventually([] { return fake_cuda_held_calls() == 2; }));
  CHECK(returned == 0);
  fake_cuda_release_calls();
  keeper.join();
  other.join();
  CHECK(returned == 2);
  CHECK(fake_cuda_held_calls() == 0);
  CHECK(card.log() == std::vector<std::uint32_t>{1});
}

TEST_CASE("fake_cuda: a range of host memory is registered only if one mapping holds it") {
  const Card card;
  const cuda::Driver& driver = card.driver();
  const std::size_t before = fake_cuda_registered_count();
  const Pages pages(3);
  pages.protect(1, PROT_READ);  // now three mappings
  CHECK(driver.cuMemHostRegister(pages.page(0), 2 * kPage, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemHostRegister(pages.page(1), kPage, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemHostRegister(pages.page(1), kPage, CU_MEMHOSTREGISTER_READ_ONLY) ==
        CUDA_SUCCESS);
  CHECK(driver.cuMemHostRegister(pages.page(0), kPage, 0) == CUDA_SUCCESS);
  CHECK(driver.cuMemHostRegister(pages.page(0), kPage, 0) ==
        CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED);
  pages.protect(2, PROT_NONE);
  CHECK(driver.cuMemHostRegister(pages.page(2), kPage, CU_MEMHOSTREGISTER_READ_ONLY) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(fake_cuda_registered_count() == before + 2);
  CHECK(driver.cuMemHostUnregister(pages.page(0)) == CUDA_SUCCESS);
  CHECK(driver.cuMemHostUnregister(pages.page(1)) == CUDA_SUCCESS);
  CHECK(driver.cuMemHostUnregister(pages.page(1)) == CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
  CHECK(fake_cuda_registered_count() == before);
}

TEST_CASE("fake_cuda: memory that was unmapped before it is unregistered is an error") {
  const Card card;
  const Pages pages(1);
  REQUIRE(card.driver().cuMemHostRegister(pages.page(0), kPage, 0) == CUDA_SUCCESS);
  REQUIRE(::munmap(pages.page(0), kPage) == 0);
  CHECK(card.driver().cuMemHostUnregister(pages.page(0)) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace leasehold::fake_cuda
