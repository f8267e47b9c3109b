// Code without a permit can keep a handle to leased memory, and nothing more.
#include "ipc/segment/leased.hpp"

#include <catch2/catch.hpp>
#include <concepts>
#include <type_traits>

#include "ipc/segment/thread_gate.hpp"

using namespace leasehold;

namespace {

template <class H>
concept CanBeDereferenced = requires(H handle) { *handle; };
template <class H>
concept CanBeFollowed = requires(H handle) { handle.operator->(); };
template <class H>
concept CanBeIndexed = requires(H handle) { handle[0]; };
template <class H>
concept GivesItsAddress = requires(H handle) { handle.address_; };
template <class H>
concept CanBeIncremented = requires(H handle) { ++handle; };
template <class H, class To>
concept CanBeCast = requires(H handle) { static_cast<To>(handle); };
template <class H, class To>
concept CanBeRetyped = requires(H handle) { handle.template as<To>(); };

template <class T>
constexpr bool kIsOpaque =
    !CanBeDereferenced<Leased<T>> && !CanBeFollowed<Leased<T>> && !CanBeIndexed<Leased<T>> &&
    !GivesItsAddress<Leased<T>> && !CanBeIncremented<Leased<T>> && !CanBeCast<Leased<T>, T*> &&
    !CanBeCast<Leased<T>, const void*> && !CanBeCast<Leased<T>, std::uintptr_t>;

}  // namespace

static_assert(kIsOpaque<float> && kIsOpaque<const float> && kIsOpaque<std::byte>);
static_assert(CanBeDereferenced<float*> && CanBeIndexed<float*> && CanBeCast<float*, void*>,
              "the concepts above hold for a plain pointer");
static_assert(!std::is_constructible_v<Leased<float>, float*>, "cannot be made from an address");
static_assert(!std::is_convertible_v<Leased<float>, bool>, "a test for null must be spelled out");

// Const can be added, never removed.
static_assert(std::is_constructible_v<Leased<const float>, Leased<float>>);
static_assert(!std::is_constructible_v<Leased<float>, Leased<const float>>);
static_assert(CanBeRetyped<Leased<std::byte>, float> && CanBeRetyped<Leased<float>, const int>);
static_assert(CanBeRetyped<Leased<const float>, const int>);
static_assert(!CanBeRetyped<Leased<const float>, int>);
static_assert(!CanBeRetyped<Leased<const float>, float>);

// Only a gate makes permits, and a permit ends with its unit.
static_assert(!std::is_default_constructible_v<LaunchPermit>);
static_assert(!std::is_constructible_v<LaunchPermit, SequenceMask>);
static_assert(!std::is_copy_constructible_v<LaunchPermit>);
static_assert(!std::is_copy_assignable_v<LaunchPermit>);
static_assert(!std::is_move_constructible_v<LaunchPermit>);
static_assert(!std::is_move_assignable_v<LaunchPermit>);

TEST_CASE("leased: a default handle is null") {
  CHECK_FALSE(static_cast<bool>(Leased<float>()));
  CHECK(Leased<float>() == Leased<float>());
}
