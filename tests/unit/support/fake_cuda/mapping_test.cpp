/// Virtual memory is reserved, mapped, protected and released as on a card.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/support/child_process.hpp"
#include "tests/unit/support/fake_cuda/card.hpp"

namespace leasehold::fake_cuda {
namespace {

constexpr std::size_t kPiece = std::size_t{2} << 20;

class Mapped {
 public:
  explicit Mapped(const Card& card) : driver_(card.driver()) {
    const auto prop = Card::memory();
    REQUIRE(driver_.cuMemAddressReserve(&at_, 2 * kPiece, 0, 0, 0) == CUDA_SUCCESS);
    REQUIRE(driver_.cuMemCreate(&handle_, kPiece, &prop, 0) == CUDA_SUCCESS);
    REQUIRE(driver_.cuMemMap(at_, kPiece, 0, handle_, 0) == CUDA_SUCCESS);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() {
    driver_.cuMemUnmap(at_, kPiece);
    driver_.cuMemRelease(handle_);
    driver_.cuMemAddressFree(at_, 2 * kPiece);
  }
  CUdeviceptr at() const { return at_; }
  std::byte* bytes() const { return reinterpret_cast<std::byte*>(at_); }
  CUmemGenericAllocationHandle handle() const { return handle_; }
  CUresult allow(CUmemAccess_flags flags) const {
    const CUmemAccessDesc access{.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0},
                                 .flags = flags};
    return driver_.cuMemSetAccess(at_, kPiece, &access, 1);
  }

 private:
  const cuda::Driver& driver_;
  CUdeviceptr at_ = 0;
  CUmemGenericAllocationHandle handle_ = 0;
};

int write_mapped(const Mapped& mapped) {
  *static_cast<volatile std::byte*>(mapped.bytes()) = std::byte{1};
  return 0;
}

TEST_CASE("fake_cuda: new memory holds garbage and can be written once access was set") {
  const Card card;
  const Mapped mapped(card);
  REQUIRE(mapped.allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(mapped.bytes()[0] == std::byte{0xAB});
  CHECK(mapped.bytes()[kPiece - 1] == std::byte{0xAB});
  CHECK(write_mapped(mapped) == 0);
}

TEST_CASE("fake_cuda: memory without write access is not written") {
  const Card card;
  const Mapped mapped(card);
  CHECK(testing::run_in_child([&] { return write_mapped(mapped); }).killed_by == SIGSEGV);
  REQUIRE(mapped.allow(CU_MEM_ACCESS_FLAGS_PROT_READ) == CUDA_SUCCESS);
  CHECK(mapped.bytes()[0] == std::byte{0xAB});
  CHECK(testing::run_in_child([&] { return write_mapped(mapped); }).killed_by == SIGSEGV);
}

TEST_CASE("fake_cuda: unmapped memory faults, and its range can be mapped again") {
  const Card card;
  const Mapped mapped(card);
  REQUIRE(mapped.allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(write_mapped(mapped) == 0);
  const cuda::Driver& driver = card.driver();
  REQUIRE(driver.cuMemUnmap(mapped.at(), kPiece) == CUDA_SUCCESS);
  CHECK(testing::run_in_child([&] { return write_mapped(mapped); }).killed_by == SIGSEGV);
  REQUIRE(driver.cuMemMap(mapped.at(), kPiece, 0, mapped.handle(), 0) == CUDA_SUCCESS);
  REQUIRE(mapped.allow(CU_MEM_ACCESS_FLAGS_PROT_READWRITE) == CUDA_SUCCESS);
  CHECK(mapped.bytes()[0] == std::byte{1});
}

TEST_CASE("fake_cuda: mappings do not overlap and lie inside reservations") {
  const Card card;
  const Mapped mapped(card);
  const cuda::Driver& driver = card.driver();
  CHECK(driver.cuMemMap(mapped.at(), kPiece, 0, mapped.handle(), 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemMap(mapped.at() + 2 * kPiece, kPiece, 0, mapped.handle(), 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemAddressFree(mapped.at(), 2 * kPiece) == CUDA_ERROR_INVALID_VALUE);
  CHECK(driver.cuMemUnmap(mapped.at(), 2 * kPiece) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE("fake_cuda: memory is free after both its handle and its mapping are released") {
  const Card card;
  const std::size_t before = card.free_bytes();
  const cuda::Driver& driver = card.driver();
  {
    const Mapped mapped(card);
    CHECK(card.free_bytes() == before - kPiece);
    REQUIRE(driver.cuMemRelease(mapped.handle()) == CUDA_SUCCESS);
    CHECK(card.free_bytes() == before - kPiece);
  }
  CHECK(card.free_bytes() == before);
}

TEST_CASE("fake_cuda: sizes are multiples of the granularity") {
  const Card card;
  std::size_t granularity = 0;
  const auto prop = Card::memory();
  CHECK(card.driver().cuMemGetAllocationGranularity(
            &granularity, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED) == CUDA_SUCCESS);
  CHECK(granularity == kPiece);
  CUmemGenericAllocationHandle handle = 0;
  CHECK(card.driver().cuMemCreate(&handle, kPiece + 1, &prop, 0) == CUDA_ERROR_INVALID_VALUE);
}

}  // namespace
}  // namespace leasehold::fake_cuda
