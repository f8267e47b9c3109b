/// Streams keep their order, events report progress, and a test controls when work runs.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

using Log = std::vector<std::uint32_t>;

CUevent new_event(const Card& card) {
  CUevent event = nullptr;
  REQUIRE(card.driver().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING) == CUDA_SUCCESS);
  return event;
}

TEST_CASE("fake_cuda: a stream runs its kernels in order") {
  Card card;
  for (std::uint32_t i = 0; i < 20; ++i) REQUIRE(card.append(i) == CUDA_SUCCESS);
  const Log log = card.log();
  REQUIRE(log.size() == 20);
  for (std::uint32_t i = 0; i < 20; ++i) CHECK(log[i] == i);
}

TEST_CASE(
    "fake_cuda: while the card is held an event is not ready, and a test runs items one by one") {
  Card card;
  const cuda::Driver& driver = card.driver();
  CUevent event = new_event(card);
  CHECK(driver.cuEventQuery(event) == CUDA_SUCCESS);
  fake_cuda_hold();
  card.append(1);
  REQUIRE(driver.cuEventRecord(event, card.stream()) == CUDA_SUCCESS);
  card.append(2);
  CHECK(driver.cuEventQuery(event) == CUDA_ERROR_NOT_READY);
  CHECK(card.log_so_far().empty());
  CHECK(fake_cuda_run(1) == 1);
  CHECK(driver.cuEventQuery(event) == CUDA_SUCCESS);
  CHECK(card.log_so_far() == Log{1});
  CHECK(fake_cuda_run(5) == 1);
  fake_cuda_release();
  CHECK(card.log() == Log{1, 2});
  driver.cuEventDestroy(event);
}

TEST_CASE("fake_cuda: a stream waits for the recording that an event had at the time of the call") {
  Card card;
  const cuda::Driver& driver = card.driver();
  CUevent event = new_event(card);
  CUstream other = card.new_stream(-1);
  fake_cuda_hold();
  card.append(1);
  driver.cuEventRecord(event, card.stream());
  card.append(2);
  REQUIRE(driver.cuStreamWaitEvent(other, event, 0) == CUDA_SUCCESS);
  card.append(3, other);
  CHECK(fake_cuda_run(1) == 1);
  CHECK(card.log_so_far() == Log{1});
  CHECK(fake_cuda_run(1) == 1);  // it has the higher priority and no longer waits
  CHECK(card.log_so_far() == Log{1, 3});
  fake_cuda_release();
  CHECK(card.log() == Log{1, 3, 2});
  driver.cuEventDestroy(event);
}

TEST_CASE("fake_cuda: a copy reads pinned memory when it runs, other memory at once") {
  Card card;
  const cuda::Driver& driver = card.driver();
  CUdeviceptr at = 0;
  REQUIRE(driver.cuMemAlloc(&at, 8) == CUDA_SUCCESS);
  void* pinned = nullptr;
  REQUIRE(driver.cuMemHostAlloc(&pinned, 4, 0) == CUDA_SUCCESS);
  std::uint32_t plain = 1;
  std::memcpy(pinned, &plain, 4);
  fake_cuda_hold();
  driver.cuMemcpyHtoDAsync(at, pinned, 4, card.stream());
  driver.cuMemcpyHtoDAsync(at + 4, &plain, 4, card.stream());
  plain = 2;
  std::memcpy(pinned, &plain, 4);
  fake_cuda_release();
  std::array<std::uint32_t, 2> words{};
  REQUIRE(driver.cuMemcpyDtoHAsync(words.data(), at, 8, card.stream()) == CUDA_SUCCESS);
  CHECK(words == std::array<std::uint32_t, 2>{2, 1});
  driver.cuMemFreeHost(pinned);
  driver.cuMemFree(at);
}

TEST_CASE("fake_cuda: copies and memsets stay within device memory") {
  Card card;
  const cuda::Driver& driver = card.driver();
  CUdeviceptr at = 0;
  REQUIRE(driver.cuMemAlloc(&at, 4096) == CUDA_SUCCESS);
  std::uint32_t word = 0;
  CHECK(driver.cuMemsetD8Async(at, 7, 4096, card.stream()) == CUDA_SUCCESS);
  CHECK(driver.cuMemcpyDtoDAsync(at, at + 2048, 2048, card.stream()) == CUDA_SUCCESS);
  CHECK(driver.cuMemcpyDtoHAsync(&word, at, 4, card.stream()) == CUDA_SUCCESS);
  CHECK(word == 0x07070707);
  CHECK(driver.cuMemsetD8Async(at, 7, 4097, card.stream()) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(&word), &word, 4, card.stream()) ==
        CUDA_ERROR_INVALID_VALUE);
  driver.cuMemFree(at);
}

}  // namespace
}  // namespace leasehold::fake_cuda
