/// A failing driver: a typed error at creation, a fault in a step, and no launch after a fault.
#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdlib>

#include "kernels/cuda/kernel_image.hpp"
#include "tests/unit/kernels/cuda_backend/decode_rig.hpp"

namespace leasehold::testing {
namespace {

using cuda::GraphUse;

Error creation_error(const char* function, CUresult result) {
  (void)test_card();
  FakeTable table;
  fake_cuda_fail_next(function, result);
  const auto made = cuda::CudaBackend::create(test_card(), kLimits, table.gate(), {});
  REQUIRE_FALSE(made);
  return made.error();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("cuda backend: too little memory is an error that says what to do") {
  const Error device = creation_error("cuMemAlloc", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(device.code == Errc::OutOfMemory);
  CHECK(contains(device.detail, "choose a smaller model"));
  CHECK(creation_error("cuMemHostAlloc", CUDA_ERROR_OUT_OF_MEMORY).code == Errc::OutOfMemory);
}

TEST_CASE("cuda backend: a model that the kernels or the card cannot compute is refused") {
  const auto refusal = [](BackendLimits limits, cuda::CudaOptions options) {
    FakeTable table;
    const auto made =
        cuda::CudaBackend::create(test_card(), limits, table.gate(), std::move(options));
    return made ? std::string("created")
                : fmt::format("{}: {}", name(made.error().code), made.error().detail);
  };
  const auto with = [](auto member, std::uint32_t value) {
    BackendLimits limits = kLimits;
    limits.*member = value;
    return limits;
  };
  using Catch::Matchers::StartsWith;
  CHECK_THAT(refusal(with(&BackendLimits::head_dim, 577), {}),
             StartsWith("DeviceUnsupported: the model's heads have 577 elements"));
  const BackendLimits many_heads = with(&BackendLimits::n_heads, 129);
  CHECK_THAT(refusal(many_heads, {.rows = cuda::RowArithmetic::Halves}),
             StartsWith("DeviceUnsupported: the model has 129 heads"));
  CHECK(refusal(many_heads, {.rows = cuda::RowArithmetic::Floats}) == "created");
  CHECK(refusal(with(&BackendLimits::state_key_dim, 1024), {}) == "created");
  ::setenv("FAKE_CUDA_SHARED_KIB", "64", 1);
  CHECK_THAT(refusal(with(&BackendLimits::state_key_dim, 512), {}),
             StartsWith("DeviceUnsupported: the keys of the model's recurrent state have 512 "
                        "elements, but this card has shared memory for 474"));
  CHECK(refusal(with(&BackendLimits::state_key_dim, 474), {}) == "created");
  ::unsetenv("FAKE_CUDA_SHARED_KIB");
}

TEST_CASE("cuda backend: an image that the card rejects is an unsupported device") {
  const Error error = creation_error("cuModuleLoadData", CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(error.code == Errc::DeviceUnsupported);
  CHECK(contains(error.detail, cuda::has_kernel_code()
                                   ? "; update the driver, or use --device cpu"
                                   : "; build with nvcc (preset cuda), or use --device cpu"));
}

TEST_CASE("cuda backend: only a card that rejects an optional image does without it") {
  const auto failed_image = [](std::uint64_t n, CUresult result) {
    (void)test_card();
    fake_cuda_fail_after(n, "cuModuleLoadData", result);
    const auto library = cuda::KernelLibrary::load(test_card());
    return library ? std::nullopt : std::optional(library.error().code);
  };
  const std::uint64_t optional = cuda::kernel_images().size() - 1;
  CHECK(failed_image(optional, CUDA_ERROR_NO_BINARY_FOR_GPU) == std::nullopt);
  CHECK(failed_image(optional, CUDA_ERROR_OUT_OF_MEMORY) == Errc::OutOfMemory);
  CHECK(failed_image(optional, CUDA_ERROR_ILLEGAL_ADDRESS) == Errc::DeviceFault);
  CHECK(failed_image(optional - 1, CUDA_ERROR_NO_BINARY_FOR_GPU) == Errc::DeviceUnsupported);
}

TEST_CASE("cuda backend: an image that does not load for another reason names its remedy") {
  const Error error = creation_error("cuModuleLoadData", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(error.code == Errc::OutOfMemory);
  CHECK(error.detail.ends_with("; use --device cpu"));
}

TEST_CASE("cuda backend: a kernel's static shared memory counts towards the default limit") {
  cuda::KernelLibrary library = required(cuda::KernelLibrary::load(test_card()));
  constexpr std::uint32_t kBeyond = 48 * 1024 - 64;  // part of the 48 KiB is static
  const std::uint64_t set_before = fake_cuda_call_count("cuFuncSetAttribute");
  const CUfunction function = required(library.find("lh_rms_norm", kBeyond));
  CHECK(fake_cuda_call_count("cuFuncSetAttribute") - set_before == 2);  // and prefers it to cache
  int allowed = 0;
  REQUIRE(test_card().driver().cuFuncGetAttribute(
              &allowed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, function) == CUDA_SUCCESS);
  CHECK(allowed >= static_cast<int>(kBeyond));
  CHECK(library.find("lh_none", 0).error().code == Errc::DeviceUnsupported);
}

TEST_CASE("cuda backend: a fault during the card's probe fails the creation") {
  CHECK(creation_error("cuLaunchKernel", CUDA_ERROR_LAUNCH_FAILED).code == Errc::DeviceFault);
}

TEST_CASE("cuda backend: after a failed launch nothing is launched and no waiter is called") {
  DecodeRig rig({.graphs = GraphUse::None});
  rig.step();
  rig.units.start([](int n) {
    if (n == 7) fake_cuda_fail_next("cuLaunchKernel", CUDA_ERROR_ILLEGAL_ADDRESS);
  });
  CHECK(rig.step().none_live());
  REQUIRE(rig.backend->fault());
  CHECK(rig.backend->fault()->code == Errc::DeviceFault);
  CHECK(contains(rig.backend->fault()->detail, "restart this worker"));
  CHECK(rig.units.count() == 8);

  const std::uint64_t launches = fake_cuda_call_count("cuLaunchKernel");
  bool told = false;
  rig.backend->when_settled(SettleScope::Everything, [&] { told = true; });
  CHECK(rig.step().none_live());
  CHECK(fake_cuda_call_count("cuLaunchKernel") == launches);
  CHECK_FALSE(told);
}

TEST_CASE("cuda backend: a device lost while launches wait is a fault, and no waiter is called") {
  const GraphUse graphs = GENERATE(GraphUse::None, GraphUse::Gated);
  DecodeRig rig({.graphs = graphs, .max_in_flight = 16});  // room for the held launches
  rig.step();
  bool told = false;
  const int last = graphs == GraphUse::None ? 9 : 1;
  rig.units.start([&](int n) {
    if (n == last - 1) fake_cuda_hold();
    if (n == last) {
      rig.backend->when_settled(SettleScope::Everything, [&] { told = true; });
      fake_cuda_lose_device();
    }
  });
  CHECK(rig.step().none_live());
  REQUIRE(rig.backend->fault());
  CHECK(rig.backend->fault()->code == Errc::DeviceFault);
  CHECK_FALSE(told);
}

TEST_CASE("cuda backend: without graphs a step runs launch by launch") {
  DecodeRig plain({.graphs = GraphUse::None});
  plain.step();
  DecodeRig rig;
  fake_cuda_fail_next("cuGraphInstantiateWithFlags", CUDA_ERROR_OUT_OF_MEMORY);
  CHECK(rig.step().live == 0b111);
  CHECK(rig.all_logits() == plain.all_logits());
  CHECK(rig.backend->graph_count() == 0);
  CHECK(rig.step().live == 0b111);
  CHECK(rig.all_logits() == plain.all_logits());
  CHECK_FALSE(rig.backend->fault());
}

}  // namespace leasehold::testing
